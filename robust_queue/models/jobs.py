"""Jobs: what was asked for. Where a job stands is told by its execution row."""

from datetime import datetime
from typing import Any, Self

from django.db import models, router
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from robust_queue.fields import IdField, NameField
from robust_queue.identifiers import new_job_id


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs, narrowed by where they stand."""

    def finished(self) -> Self:
        return self.filter(finished_execution__isnull=False)

    def failed(self) -> Self:
        return self.filter(failed_execution__isnull=False)

    def unfinished(self) -> Self:
        return self.filter(finished_execution__isnull=True)

    def with_state(self) -> Self:
        """Load whatever row tells where each job stands, in the same query."""
        return self.select_related(*STATES)


class JobManager(models.Manager.from_queryset(JobQuerySet)):  # type: ignore[misc]
    """All jobs of a database; ``db_manager(alias)`` names another one.

    What clears is here and not on the QuerySet, where a filter before it would seem to
    count.
    """

    def clear_finished_in_batches(
        self,
        batch_size: int = 500,
        finished_before: datetime | None = None,
        task: Any = None,
        sleep_between_batches: float = 0,
        *,
        queue: str | None = None,
    ) -> int:
        """Delete finished jobs that are old enough; return how many.

        Each is when its own time is up, as its task or the settings say. With
        ``finished_before`` all are that finished before that moment. ``task`` is a
        task or its path. Every batch is a transaction of its own.
        """
        return self._clear(
            "finished",
            {"task": task, "queue": queue, "finished_before": finished_before},
            batch_size=batch_size,
            sleep_between_batches=sleep_between_batches,
        )

    def clear_failed_in_batches(
        self,
        batch_size: int = 500,
        finished_before: datetime | None = None,
        task: Any = None,
        sleep_between_batches: float = 0,
        *,
        queue: str | None = None,
        kind: str | None = None,
    ) -> int:
        """Likewise for jobs that have failed for good, perhaps of one kind only."""
        chosen = {"task": task, "queue": queue, "kind": kind}
        return self._clear(
            "failed",
            {**chosen, "finished_before": finished_before},
            batch_size=batch_size,
            sleep_between_batches=sleep_between_batches,
        )

    def _clear(self, state: str, chosen: dict[str, Any], **how: Any) -> int:
        # Verbs are above the tables, and so known here by their names.
        lifecycle = "robust_queue.lifecycle.clear"
        choice = import_string(f"{lifecycle}.Choice")(**chosen)
        database = self._db or router.db_for_write(self.model)
        cleared: int = import_string(f"{lifecycle}.clear")(
            database, state, choice, **how
        )
        return cleared


class Job(models.Model):
    """One call of a task. Written once; only its execution rows come and go."""

    id = IdField(primary_key=True, default=new_job_id, editable=False)
    task_path = NameField(_("task"), max_length=255)
    backend = NameField(_("backend"), max_length=64)
    queue_name = NameField(_("queue"), max_length=128)
    priority = models.SmallIntegerField(
        _("priority"),
        default=0,
        help_text=_("As given; executions hold it as it sorts ascending."),
    )
    arguments = models.TextField(_("arguments"), help_text=_("JSON, pure ASCII."))
    metadata = models.TextField(_("metadata"), default="", blank=True)
    concurrency_key = NameField(
        _("concurrency key"), max_length=1024, default="", blank=True
    )
    unique_key = NameField(
        _("unique key"), max_length=64, default="", db_default="", blank=True
    )
    partition_key = NameField(
        _("partition"), max_length=128, default="", db_default="", blank=True
    )
    run_after = models.DateTimeField(_("run after"), null=True, blank=True)
    enqueued_at = models.DateTimeField(_("enqueued at"))

    objects = JobManager()

    class Meta:
        db_table = "robust_queue_jobs"
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        # What else than to look somebody may do, also where it concerns many jobs.
        permissions = [
            ("view_arguments", "Can view arguments, results and errors"),
            ("view_unredacted_arguments", "Can view arguments that are redacted"),
            ("retry_job", "Can retry jobs"),
            ("discard_job", "Can discard jobs and clear queues"),
            ("cancel_job", "Can cancel jobs"),
            ("run_job", "Can run scheduled jobs and recurring tasks now"),
            ("pause_queue", "Can pause and resume queues and tasks"),
        ]

    def __str__(self) -> str:
        return f"{self.task_path} {self.id}"

    @property
    def state(self) -> str:
        """``scheduled``, ``ready``, ``blocked``, ``claimed``, ``failed``, ``finished``.

        A job without any of these rows breaks the first invariant: ``lost``.
        """
        for relation in STATES:
            if getattr(self, relation, None) is not None:
                return relation.removesuffix("_execution")
        return "lost"

    @property
    def created_at(self) -> datetime:
        return self.enqueued_at

    @property
    def updated_at(self) -> datetime:
        """When the job came to stand where it stands now."""
        execution = getattr(self, f"{self.state}_execution", None)
        return execution.since if execution is not None else self.enqueued_at


STATES = (
    "finished_execution",
    "failed_execution",
    "claimed_execution",
    "ready_execution",
    "scheduled_execution",
    "blocked_execution",
)
