"""Where jobs stand: one list per state."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from robust_queue.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Process,
    ReadyExecution,
    ScheduledExecution,
)

from . import display, redaction
from .acting import RETRY, CancellableAdmin, DiscardableAdmin
from .base import JobRowAdmin
from .filters import (
    ExceptionFilter,
    JobQueueFilter,
    KeyFilter,
    KindFilter,
    QueueFilter,
)
from .rerunning import RerunnableAdmin

MESSAGE_WIDTH = 80
WAITING_FIELDS = [
    "job_link",
    "task",
    "shown_arguments",
    "queue_name",
    "priority",
    "attempts",
    "created_at",
]


class WaitingAdmin(JobRowAdmin):
    """Rows of jobs that are neither finished nor failed."""

    list_filter = [QueueFilter]
    readonly_fields = ["job_link", "task", "shown_arguments"]


class StoppableAdmin(CancellableAdmin, DiscardableAdmin, WaitingAdmin):
    """Rows of jobs that nobody has begun to run."""

    actions: Any = ("cancel_selected", "discard_selected")


@admin.register(ReadyExecution)
class ReadyAdmin(StoppableAdmin):
    """What workers take next, in their order."""

    list_display = [
        "task",
        "queue_name",
        "partition_key",
        "priority",
        "attempts",
        "created_at",
        "job_id",
    ]
    ordering = ["priority", "job"]
    fields = [*WAITING_FIELDS, "partition_key"]


@admin.register(ScheduledExecution)
class ScheduledAdmin(StoppableAdmin):
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
    fields = [*WAITING_FIELDS, "scheduled_at"]


@admin.register(BlockedExecution)
class BlockedAdmin(StoppableAdmin):
    """What waits for a slot of its concurrency key."""

    list_filter = [QueueFilter, KeyFilter]
    list_display = [
        "task",
        "concurrency_key",
        "queue_name",
        "priority",
        "created_at",
        "job_id",
    ]
    ordering = ["concurrency_key", "priority", "job"]
    fields = [*WAITING_FIELDS, "concurrency_key", "other_keys"]


@admin.register(ClaimedExecution)
class ClaimedAdmin(CancellableAdmin, WaitingAdmin):
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
    fields = [*WAITING_FIELDS, "process_link"]
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
class FinishedAdmin(RerunnableAdmin):
    """What has succeeded, the latest first."""

    replaces = False
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
    @redaction.concealed
    def shown_result(self, row: FinishedExecution) -> Any:
        return display.result(row.result, openly=redaction.is_open(row))


@admin.register(FailedExecution)
class FailedAdmin(DiscardableAdmin, RerunnableAdmin):
    """What has failed for good, the latest first, until someone decides."""

    list_display = [
        "task",
        "kind",
        "exception",
        "summary",
        "finished_at",
        "queue",
        "attempts",
        "job_id",
    ]
    list_filter = [KindFilter, ExceptionFilter, JobQueueFilter, "finished_at"]
    wide_columns = (*JobRowAdmin.wide_columns, "traceback")
    ordering = ["-finished_at"]
    fields = [
        "job_link",
        "task",
        "shown_arguments",
        "kind",
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
    actions: Any = ("retry_selected", "discard_selected")

    @admin.action(description=_("Retry selected jobs"), permissions=["retry"])
    def retry_selected(
        self, request: HttpRequest, rows: QuerySet[Any]
    ) -> HttpResponse | None:
        return self.act(RETRY, request, rows)

    def get_list_display(self, request: HttpRequest) -> Any:
        hidden = set() if redaction.sees_contents(request) else {"summary"}
        return [name for name in self.list_display if name not in hidden]

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
