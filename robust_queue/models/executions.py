"""Executions: where a job stands. Each unfinished job has exactly one of these rows.

None of them is ever updated; a transition deletes a row here and inserts one there.
No foreign key is enforced by the database: each would cost a lookup and a row lock per
insert. The invariants are guarded by the shape of the statements and by the tests.
"""

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField

from .attempts import Ended, Failure
from .jobs import Job


def _row_of_job(related_name: str) -> "models.OneToOneField[Job, Job]":
    return models.OneToOneField(
        Job,
        on_delete=models.CASCADE,
        primary_key=True,
        db_constraint=False,
        related_name=related_name,
        verbose_name=_("job"),
    )


class Execution(models.Model):
    """What the rows of unfinished, unfailed jobs have in common."""

    queue_name = NameField(_("queue"), max_length=128)
    priority = models.SmallIntegerField(
        _("priority"), help_text=_("The rank: the smallest goes first.")
    )
    attempts = models.PositiveSmallIntegerField(
        _("attempts"), default=0, help_text=_("Begun so far.")
    )
    created_at = models.DateTimeField(_("since"))

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"

    @property
    def since(self) -> datetime:
        return self.created_at


class ReadyExecution(Execution):
    """Waits for a worker."""

    job = _row_of_job("ready_execution")
    partition_key = NameField(
        _("partition"), max_length=128, default="", db_default="", blank=True
    )

    class Meta:
        db_table = "robust_queue_ready_executions"
        verbose_name = _("ready execution")
        verbose_name_plural = _("ready executions")
        indexes = [
            models.Index(fields=["priority", "job"], name="rqueue_poll_all"),
            models.Index(
                fields=["queue_name", "priority", "job"], name="rqueue_poll_by_queue"
            ),
            models.Index(
                # Of few jobs, where a database can leave out the others.
                fields=["queue_name", "partition_key", "priority", "job"],
                condition=~models.Q(partition_key=""),
                name="rqueue_poll_by_partition",
            ),
        ]


class ScheduledExecution(Execution):
    """Waits for its time."""

    job = _row_of_job("scheduled_execution")
    scheduled_at = models.DateTimeField(_("scheduled at"))

    class Meta:
        db_table = "robust_queue_scheduled_executions"
        verbose_name = _("scheduled execution")
        verbose_name_plural = _("scheduled executions")
        indexes = [
            models.Index(
                fields=["scheduled_at", "priority", "job"], name="rqueue_dispatch_all"
            ),
        ]


class BlockedExecution(Execution):
    """Waits for a slot of its concurrency key."""

    job = _row_of_job("blocked_execution")
    concurrency_key = NameField(
        _("concurrency key"), max_length=255, help_text=_("The one it waits for.")
    )
    other_keys = NameField(
        _("other keys"),
        max_length=1024,
        default="",
        db_default="",
        blank=True,
        help_text=_("Of which it needs a slot as well."),
    )

    class Meta:
        db_table = "robust_queue_blocked_executions"
        verbose_name = _("blocked execution")
        verbose_name_plural = _("blocked executions")
        indexes = [
            models.Index(
                fields=["concurrency_key", "priority", "job"], name="rqueue_unblock"
            ),
        ]


class ClaimedExecution(Execution):
    """Belongs to a worker, which alone knows the token."""

    job = _row_of_job("claimed_execution")
    process_id = IdField(_("process"))
    token = IdField(_("token"), help_text=_("One per claim; settling asks for it."))
    slot_id = IdField(
        _("slot"),
        null=True,
        blank=True,
        help_text=_("Jobs that run one after the other have one slot in common."),
    )

    class Meta:
        db_table = "robust_queue_claimed_executions"
        verbose_name = _("claimed execution")
        verbose_name_plural = _("claimed executions")
        indexes = [
            models.Index(fields=["process_id", "job"], name="rqueue_claims_of_process"),
        ]


class FinishedExecution(Ended):
    """Has succeeded. The row beside the job spares the wide job an update."""

    job = _row_of_job("finished_execution")
    result = models.TextField(_("result"), help_text=_("JSON, pure ASCII."))

    class Meta:
        db_table = "robust_queue_finished_executions"
        verbose_name = _("finished execution")
        verbose_name_plural = _("finished executions")
        indexes = [models.Index(fields=["finished_at"], name="rqueue_finished_at")]


class FailedExecution(Ended, Failure):
    """Has failed for good, until someone retries it."""

    job = _row_of_job("failed_execution")

    class Meta:
        db_table = "robust_queue_failed_executions"
        verbose_name = _("failed execution")
        verbose_name_plural = _("failed executions")
        indexes = [models.Index(fields=["finished_at"], name="rqueue_failed_at")]
