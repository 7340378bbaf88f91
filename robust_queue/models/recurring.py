"""Recurring tasks, and the instants at which they were enqueued or left out."""

from datetime import timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField
from robust_queue.recurrence import MISSED_LIMIT

# Whoever declares a task says so every minute or two. Nobody did for so long: nobody
# does.
SILENCE = timedelta(minutes=5)


class OnMissed(models.TextChoices):
    """What becomes of instants that nobody was there for."""

    SKIP = "skip", _("skip them")
    RUN_ONCE = "run_once", _("run once for all of them")
    RUN_ALL = "run_all", _("run all of them")


class Overlap(models.TextChoices):
    """What becomes of a run whose predecessor is not over yet."""

    ALLOW = "allow", _("run both at the same time")
    SKIP = "skip", _("skip the later one")
    QUEUE = "queue", _("run the later one afterwards")


class Outcome(models.TextChoices):
    """What has become of an instant."""

    ENQUEUED = "enqueued", _("enqueued")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    # Somebody has deleted the job, or it was not kept for as long as it took to look.
    GONE = "gone", _("unknown, its job is gone")
    HANDED_OVER = "handed_over", _("handed over to another backend")
    SKIPPED = "skipped", _("skipped")
    REFUSED = "refused", _("could not be enqueued")


class RecurringTask(models.Model):
    """A task with a schedule."""

    key = NameField(_("key"), max_length=255, unique=True)
    task_path = NameField(_("task"), max_length=255)
    schedule = models.CharField(_("schedule"), max_length=255)
    timezone = models.CharField(
        _("time zone"),
        max_length=64,
        default="",
        blank=True,
        help_text=_("Such as Europe/Madrid. Empty: that of the project."),
    )
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
    declared_enabled = models.BooleanField(
        _("declared as enabled"),
        default=True,
        db_default=True,
        help_text=_("A change of the declaration counts, else what an operator says."),
    )
    description = models.TextField(_("description"), default="", blank=True)
    on_missed = models.CharField(
        _("if instants are missed"),
        max_length=16,
        choices=OnMissed,
        default=OnMissed.RUN_ONCE,
        db_default=OnMissed.RUN_ONCE.value,
    )
    missed_limit = models.PositiveIntegerField(
        _("at most"),
        default=MISSED_LIMIT,
        db_default=MISSED_LIMIT,
        help_text=_("If all are to be run: so many, the latest."),
    )
    overlap = models.CharField(
        _("if the run before is not over"),
        max_length=16,
        choices=Overlap,
        default=Overlap.ALLOW,
        db_default=Overlap.ALLOW.value,
    )
    jitter = models.PositiveIntegerField(
        _("jitter"),
        default=0,
        db_default=0,
        help_text=_("Each run begins up to so many seconds later."),
    )
    next_run_at = models.DateTimeField(_("next run"), null=True, blank=True)
    declared_at = models.DateTimeField(
        _("declared at"),
        null=True,
        blank=True,
        help_text=_("When a scheduler last said that it is declared as it is here."),
    )
    retired_at = models.DateTimeField(_("retired at"), null=True, blank=True)
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

    @property
    def is_orphaned(self) -> bool:
        """Was it declared once, and is by nobody who runs?"""
        if not self.static or self.declared_at is None:
            return False
        return self.declared_at < timezone.now() - SILENCE

    @property
    def state(self) -> str:
        """Retired, orphaned, paused or active, in one word."""
        if self.retired_at is not None:
            return "retired"
        if self.is_orphaned:
            return "orphaned"
        return "active" if self.enabled else "paused"


class RecurringExecution(models.Model):
    """One instant of a schedule, and the job it became. At most one, ever.

    Or several instants in a row that became none: from ``run_at`` to ``skipped_until``.
    """

    # Neither points at its row: history outlives the schedule, and the job.
    task_key = NameField(_("recurring task"), max_length=255)
    job_id = IdField(_("job"), null=True, blank=True)
    run_at = models.DateTimeField(_("run at"))
    by_hand = models.BooleanField(
        _("by hand"),
        default=False,
        db_default=False,
        help_text=_("Somebody wanted a run now: it is no instant of the schedule."),
    )
    outcome = models.CharField(
        _("outcome"),
        max_length=16,
        choices=Outcome,
        default=Outcome.ENQUEUED,
        db_default=Outcome.ENQUEUED.value,
    )
    reason = models.CharField(
        _("reason"), max_length=500, default="", db_default="", blank=True
    )
    skipped_until = models.DateTimeField(_("skipped until"), null=True, blank=True)
    skipped = models.PositiveIntegerField(
        _("how many were skipped"),
        null=True,
        blank=True,
        help_text=_("Empty if they are too many to be counted."),
    )
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    exception_class = models.CharField(
        _("exception"), max_length=255, default="", db_default="", blank=True
    )
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
        indexes = [
            # What has been enqueued and not yet been looked after, in order.
            models.Index(fields=["outcome", "id"], name="rqueue_open_instants"),
        ]

    def __str__(self) -> str:
        return f"{self.task_key} at {self.run_at.isoformat()}"

    @property
    def discreet_reason(self) -> str:
        """Without what an error says, which may be about arguments."""
        is_of_error = self.outcome == Outcome.REFUSED
        return self.reason.partition(":")[0] if is_of_error else self.reason

    @property
    def duration(self) -> timedelta | None:
        """How long the last attempt took."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at
