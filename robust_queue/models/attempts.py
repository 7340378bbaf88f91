"""Attempts: how often a job was run, by whom, and what came of it.

The attempt that is under way, or was the last, is told by the job's execution row.
Earlier ones, after which the job was tried again, are kept here.
"""

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import NameField
from robust_queue.policies import Kind

from .jobs import Job

KINDS = [
    (Kind.ERROR.value, _("error")),
    (Kind.TIMED_OUT.value, _("timed out")),
    (Kind.CRASHED.value, _("crashed")),
    (Kind.CANCELLED.value, _("cancelled")),
    (Kind.DISCARDED.value, _("discarded")),
    (Kind.EXPIRED.value, _("expired")),
]


class Ended(models.Model):
    """An attempt that is over."""

    attempts = models.PositiveSmallIntegerField(
        _("attempt"), help_text=_("Which one this was, counted from one.")
    )
    worker_id = NameField(_("worker"), max_length=128)
    started_at = models.DateTimeField(_("started at"))
    finished_at = models.DateTimeField(_("finished at"))

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"

    @property
    def since(self) -> datetime:
        return self.finished_at


class Failure(models.Model):
    """How an attempt failed."""

    kind = NameField(
        _("kind"),
        max_length=16,
        choices=KINDS,
        default=Kind.ERROR.value,
        # Known to the database: code of an earlier version does not name it.
        db_default=Kind.ERROR.value,
        blank=True,
    )
    exception_class = NameField(_("exception"), max_length=255)
    message = models.TextField(_("message"), blank=True)
    traceback = models.TextField(_("traceback"), blank=True)

    class Meta:
        abstract = True


class Attempt(Ended, Failure):
    """A failed attempt that another one followed."""

    job = models.ForeignKey(
        Job,
        on_delete=models.CASCADE,
        db_constraint=False,
        db_index=False,  # the constraint below begins with the job
        related_name="earlier_attempts",
        verbose_name=_("job"),
    )

    class Meta:
        db_table = "robust_queue_attempts"
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ["job", "attempts"]
        constraints = [
            models.UniqueConstraint(
                fields=["job", "attempts"], name="rqueue_attempt_counted_once"
            ),
        ]
