"""Processes: who is alive."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField


class Process(models.Model):
    """A supervisor, worker, dispatcher or scheduler, for as long as it beats."""

    id = IdField(primary_key=True, editable=False)
    kind = NameField(_("kind"), max_length=32)
    name = NameField(_("name"), max_length=128)
    pid = models.PositiveIntegerField(_("process id"))
    hostname = NameField(_("host"), max_length=255)
    supervisor_id = IdField(_("supervisor"), null=True, blank=True)
    metadata = models.TextField(_("metadata"), default="", blank=True)
    created_at = models.DateTimeField(_("started at"))
    last_heartbeat_at = models.DateTimeField(_("last heartbeat"))

    class Meta:
        db_table = "robust_queue_processes"
        verbose_name = _("process")
        verbose_name_plural = _("processes")
        indexes = [
            models.Index(fields=["last_heartbeat_at"], name="rqueue_silent_processes"),
            models.Index(fields=["supervisor_id"], name="rqueue_supervised_by"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="rqueue_process_name"),
        ]

    def __str__(self) -> str:
        return str(self.name)
