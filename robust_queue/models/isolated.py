"""Isolated runs: tasks that run, or ran, in processes of their own."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import NameField

from .jobs import Job


class IsolatedRun(models.Model):
    """One attempt of a job in a process of its own."""

    job = models.ForeignKey(
        Job,
        on_delete=models.CASCADE,
        db_constraint=False,
        db_index=False,  # the constraint below begins with the job
        related_name="isolated_runs",
        verbose_name=_("job"),
    )
    attempts = models.PositiveSmallIntegerField(
        _("attempt"), help_text=_("Which one this was, counted from one.")
    )
    node = NameField(_("node"), max_length=128)
    pid = models.PositiveIntegerField(_("process number"))
    reserved_at = models.DateTimeField(_("reserved at"))
    started_at = models.DateTimeField(_("started at"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    exit = models.CharField(
        _("end of the process"),
        max_length=255,
        blank=True,
        help_text=_("Empty if it lives on."),
    )
    output = models.TextField(
        _("output"), blank=True, help_text=_("The end of what the task has written.")
    )

    class Meta:
        db_table = "robust_queue_isolated_runs"
        verbose_name = _("isolated run")
        verbose_name_plural = _("isolated runs")
        ordering = ["job", "attempts"]
        constraints = [
            models.UniqueConstraint(
                fields=["job", "attempts"], name="rqueue_run_counted_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"
