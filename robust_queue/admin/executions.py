"""Where jobs stand: one list per state."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.models import CHANGE, DELETION
from django.db import router
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.discard import discard_all
from robust_queue.lifecycle.retry import retry_all
from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    Process,
    ReadyExecution,
    ScheduledExecution,
)

from . import display
from .base import REACH, JobRowAdmin, record
from .filters import ExceptionFilter, JobQueueFilter, QueueFilter

MESSAGE_WIDTH = 80


class WaitingAdmin(JobRowAdmin):
    """Rows of jobs that are neither finished nor failed."""

    list_filter = [QueueFilter]
    readonly_fields = ["job_link", "task", "shown_arguments"]


@admin.register(ReadyExecution)
class ReadyAdmin(WaitingAdmin):
    """What workers take next, in their order."""

    list_display = [
        "task",
        "queue_name",
        "priority",
        "attempts",
        "created_at",
        "job_id",
    ]
    ordering = ["priority", "job"]
    fields = [
        "job_link",
        "task",
        "shown_arguments",
        "queue_name",
        "priority",
        "attempts",
        "created_at",
    ]


@admin.register(ScheduledExecution)
class ScheduledAdmin(WaitingAdmin):
    """What is due next."""

    list_display = [
        "task",
        "scheduled_at",
        "queue_name",
        "priority",
        "attempts",
        "job_id",
    ]
    ordering = ["scheduled_at", "priority", "job"]
    fields = [*ReadyAdmin.fields, "scheduled_at"]


@admin.register(BlockedExecution)
class BlockedAdmin(WaitingAdmin):
    """What waits for a slot of its concurrency key."""

    list_display = [
        "task",
        "concurrency_key",
        "queue_name",
        "priority",
        "expires_at",
        "job_id",
    ]
    ordering = ["concurrency_key", "priority", "job"]
    fields = [*ReadyAdmin.fields, "concurrency_key", "expires_at"]


@admin.register(ClaimedExecution)
class ClaimedAdmin(WaitingAdmin):
    """What workers have, the oldest first."""

    list_display = [
        "task",
        "worker",
        "queue_name",
        "attempts",
        "created_at",
        "job_id",
    ]
    ordering = ["job"]
    fields = [*ReadyAdmin.fields, "process_link"]
    readonly_fields = [*WaitingAdmin.readonly_fields, "process_link"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        process = Process.objects.filter(pk=OuterRef("process_id"))
        name = Subquery(process.values("name")[:1])
        rows: QuerySet[Any]
        rows = super().get_queryset(request).annotate(process_name=name)
        return rows

    @admin.display(description=_("worker"))
    def worker(self, row: Any) -> str:
        return str(row.process_name or row.process_id)

    @admin.display(description=_("worker"))
    def process_link(self, row: Any) -> Any:
        return display.link(self.admin_site, Process, row.process_id, self.worker(row))


@admin.register(FinishedExecution)
class FinishedAdmin(JobRowAdmin):
    """What has succeeded, the latest first."""

    list_display = [
        "task",
        "finished_at",
        "attempts",
        "worker_id",
        "started_at",
        "job_id",
    ]
    list_filter = ["finished_at"]
    wide_columns = (*JobRowAdmin.wide_columns, "result")
    ordering = ["-finished_at"]
    fields = [
        "job_link",
        "task",
        "shown_arguments",
        "shown_result",
        "attempts",
        "worker_id",
        "started_at",
        "finished_at",
    ]
    readonly_fields = ["job_link", "task", "shown_arguments", "shown_result"]

    @admin.display(description=_("result"))
    def shown_result(self, row: FinishedExecution) -> Any:
        return display.result(row.result)


@admin.register(FailedExecution)
class FailedAdmin(JobRowAdmin):
    """What has failed for good, the latest first, until someone decides."""

    list_display = [
        "task",
        "exception",
        "summary",
        "finished_at",
        "queue",
        "attempts",
        "job_id",
    ]
    list_filter = [ExceptionFilter, JobQueueFilter, "finished_at"]
    wide_columns = (*JobRowAdmin.wide_columns, "traceback")
    ordering = ["-finished_at"]
    fields = [
        "job_link",
        "task",
        "shown_arguments",
        "exception_class",
        "shown_message",
        "shown_traceback",
        "queue",
        "attempts",
        "worker_id",
        "started_at",
        "finished_at",
    ]
    readonly_fields = [
        "job_link",
        "task",
        "shown_arguments",
        "shown_message",
        "shown_traceback",
        "queue",
    ]
    actions = ["retry_selected", "discard_selected"]

    @admin.action(description=_("Retry selected jobs"), permissions=["operate"])
    def retry_selected(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        jobs = _chosen(rows)
        count = retry_all(router.db_for_write(FailedExecution), _ids(jobs))
        record(request, jobs, CHANGE, gettext("Retried."))
        message = ngettext("%d job retried.", "%d jobs retried.", count)
        self.message_user(request, message % count)

    @admin.action(description=_("Discard selected jobs"), permissions=["discard"])
    def discard_selected(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        jobs = _chosen(rows)
        count = discard_all(router.db_for_write(FailedExecution), _ids(jobs))
        record(request, jobs, DELETION)
        message = ngettext("%d job discarded.", "%d jobs discarded.", count)
        self.message_user(request, message % count)

    @admin.display(description=_("exception"))
    def exception(self, row: FailedExecution) -> str:
        return str(row.exception_class).rpartition(".")[2]

    @admin.display(description=_("message"))
    def summary(self, row: FailedExecution) -> str:
        first_line = row.message.strip().partition("\n")[0]
        return Truncator(first_line).chars(MESSAGE_WIDTH)

    @admin.display(description=_("queue"))
    def queue(self, row: FailedExecution) -> str:
        return str(row.job.queue_name)


def _chosen(rows: QuerySet[Any]) -> list[Job]:
    """The jobs to act on, with what names them and without their arguments."""
    # No more than the list has counted: "all 10,000" must not mean a million.
    named = rows.values_list("pk", "job__task_path")[:REACH]
    return [Job(id=job_id, task_path=path) for job_id, path in named]


def _ids(jobs: Iterable[Job]) -> list[UUID]:
    return [job.id for job in jobs]
