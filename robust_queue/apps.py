"""The app: registers checks and whoever writes the log, touches nothing else."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RobustQueueConfig(AppConfig):
    """Robust Queue as an installed app."""

    name = "robust_queue"
    verbose_name = _("Robust Queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Checks need the app registry.
        from . import checks, logs  # noqa: F401, PLC0415

        checks.register_checks()
