"""The app: registers checks, touches nothing else."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RobustQueueConfig(AppConfig):
    """Robust Queue as an installed app."""

    name = "robust_queue"
    verbose_name = _("Robust Queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks  # noqa: PLC0415 (checks need the app registry)

        checks.register_checks()
