"""Rollups: what happened within a minute, a quarter of an hour, an hour.

Each process that has something to tell writes rows of its own, and writes them again
while their time is not over: the later one says all that the earlier one said. So a
reply that gets lost counts nothing twice, and nobody waits for anybody.
"""

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField, UtcField

# Of the row about all queues together.
EVERY_QUEUE = ""


class Rollup(models.Model):
    """What one process saw of one queue, or of all of them, in one stretch of time."""

    queue_name = NameField(
        _("queue"), max_length=128, blank=True, help_text=_("Empty: all together.")
    )
    span = models.PositiveIntegerField(_("span"), help_text=_("In seconds."))
    at = UtcField(_("from"), help_text=_("A multiple of the span."))
    process_id = IdField(_("process"))
    finished = models.PositiveIntegerField(_("finished"), default=0)
    failed = models.PositiveIntegerField(_("failed attempts"), default=0)
    # How many took how long, by steps that grow: see ``lifecycle.durations``.
    waits = models.TextField(_("waiting times"), default="", blank=True)
    runs = models.TextField(_("run times"), default="", blank=True)
    # Told by dispatchers: the most there was.
    depth = models.PositiveIntegerField(_("ready jobs"), null=True, blank=True)
    latency = models.PositiveBigIntegerField(
        _("longest wait"), null=True, blank=True, help_text=_("In milliseconds.")
    )

    class Meta:
        db_table = "robust_queue_rollups"
        verbose_name = _("rollup")
        verbose_name_plural = _("rollups")
        constraints = [
            models.UniqueConstraint(
                fields=["queue_name", "span", "at", "process_id"],
                name="rqueue_one_rollup_each",
            ),
        ]
        indexes = [models.Index(fields=["span", "at"], name="rqueue_old_rollups")]

    def __str__(self) -> str:
        return f"{self.queue_name or '*'} {self.span} s from {self.at}"
