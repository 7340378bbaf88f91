"""Recurring tasks, and the instants at which they were enqueued."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField


class RecurringTask(models.Model):
    """A task with a schedule."""

    key = NameField(_("key"), max_length=255, unique=True)
    task_path = NameField(_("task"), max_length=255)
    schedule = models.CharField(_("schedule"), max_length=255)
    timezone = models.CharField(_("time zone"), max_length=64, default="", blank=True)
    command = models.CharField(
        _("command"),
        max_length=2048,
        default="",
        blank=True,
        help_text=_("Unused: schedules name declared tasks, never code."),
    )
    arguments = models.TextField(_("arguments"), default="", blank=True)
    queue_name = NameField(_("queue"), max_length=128, default="", blank=True)
    priority = models.SmallIntegerField(_("priority"), null=True, blank=True)
    static = models.BooleanField(
        _("static"), default=True, help_text=_("Declared in code or settings.")
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    description = models.TextField(_("description"), default="", blank=True)
    next_run_at = models.DateTimeField(_("next run"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        db_table = "robust_queue_recurring_tasks"
        verbose_name = _("recurring task")
        verbose_name_plural = _("recurring tasks")
        indexes = [
            models.Index(fields=["enabled", "next_run_at"], name="rqueue_next_runs"),
        ]

    def __str__(self) -> str:
        return str(self.key)


class RecurringExecution(models.Model):
    """One instant of a schedule, and the job it became. At most one, ever."""

    # Neither points at its row: history outlives the schedule and, for a day, the job.
    task_key = NameField(_("recurring task"), max_length=255)
    job_id = IdField(_("job"), null=True, blank=True)
    run_at = models.DateTimeField(_("run at"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        db_table = "robust_queue_recurring_executions"
        verbose_name = _("recurring execution")
        verbose_name_plural = _("recurring executions")
        constraints = [
            models.UniqueConstraint(
                fields=["task_key", "run_at"],
                name="rqueue_one_job_per_instant",
                violation_error_message=_("This recurring task already ran then."),
            ),
            models.UniqueConstraint(fields=["job_id"], name="rqueue_instant_of_job"),
        ]

    def __str__(self) -> str:
        return f"{self.task_key} at {self.run_at.isoformat()}"
