"""Queues exist by being named; only their pauses are stored."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import NameField


class Pause(models.Model):
    """A queue that gives out no work for now."""

    queue_name = NameField(_("queue"), max_length=128, primary_key=True)
    created_at = models.DateTimeField(_("paused at"), auto_now_add=True)

    class Meta:
        db_table = "robust_queue_pauses"
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")

    def __str__(self) -> str:
        return str(self.queue_name)
