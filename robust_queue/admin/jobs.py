"""Jobs and their earlier attempts."""

from typing import Any, cast

from django.contrib import admin
from django.db import router
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.why import why_not_running
from robust_queue.models import Attempt, IsolatedRun, Job
from robust_queue.models.jobs import JobQuerySet

from . import display
from .base import JobRowAdmin, ReadOnlyAdmin
from .filters import QueueFilter, StateFilter


class PastInline(admin.TabularInline):  # type: ignore[type-arg]
    """What is kept of a job's past, on its page."""

    ordering = ["attempts"]
    extra = 0
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class AttemptInline(PastInline):
    """The attempts before the latest."""

    model = Attempt
    readonly_fields = [
        "attempts",
        "worker_id",
        "started_at",
        "finished_at",
        "kind",
        "exception_class",
    ]
    fields = [*readonly_fields]
    verbose_name_plural = _("earlier attempts")


class IsolatedRunInline(PastInline):
    """The processes in which it was run, if it had any of its own."""

    model = IsolatedRun
    readonly_fields = [
        *("attempts", "node", "pid", "reserved_at", "started_at", "finished_at"),
        "exit",
    ]
    fields = [*readonly_fields]


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """What was asked for, and where it stands."""

    list_display = [
        "task",
        "shown_state",
        "queue_name",
        "priority",
        "enqueued_at",
        "id",
    ]
    list_filter = [StateFilter, QueueFilter]
    id_lookups = ("pk",)
    name_lookups = ("task_path",)
    search_help_text = _("The id of a job, or the whole path of a task.")
    ordering = ["-id"]
    wide_columns = (
        "arguments",
        "metadata",
        "finished_execution__result",
        "failed_execution__message",
        "failed_execution__traceback",
    )
    fields = [
        "id",
        "task_path",
        "execution",
        "reasons",
        "shown_arguments",
        "queue_name",
        "priority",
        "backend",
        "concurrency_key",
        "unique_key",
        "enqueued_at",
        "run_after",
        "shown_metadata",
    ]
    readonly_fields = [
        *("id", "execution", "reasons", "shown_arguments", "shown_metadata")
    ]
    inlines = [AttemptInline, IsolatedRunInline]

    def get_queryset(self, request: HttpRequest) -> JobQuerySet:
        jobs: Any = super().get_queryset(request)
        return cast("JobQuerySet", jobs.with_state())

    @admin.display(description=_("task"))
    def task(self, job: Job) -> Any:
        return display.path(job.task_path)

    @admin.display(description=_("state"))
    def shown_state(self, job: Job) -> Any:
        return display.STATES[job.state]

    @admin.display(description=_("state"))
    def execution(self, job: Job) -> Any:
        row = getattr(job, f"{job.state}_execution", None)
        if row is None:
            return self.shown_state(job)
        return display.link(self.admin_site, type(row), job.pk, self.shown_state(job))

    @admin.display(description=_("why is it not running?"))
    def reasons(self, job: Job) -> Any:
        database = router.db_for_read(Job)
        return display.sentences(
            display.reason(self.admin_site, each)
            for each in why_not_running(database, job)
        )

    @admin.display(description=_("arguments"))
    def shown_arguments(self, job: Job) -> Any:
        return display.arguments(job.arguments)

    @admin.display(description=_("metadata"))
    def shown_metadata(self, job: Job) -> Any:
        return display.structure(job.metadata)


@admin.register(Attempt)
class AttemptAdmin(JobRowAdmin):
    """Failed attempts that another one followed."""

    list_display = [
        "task",
        "attempts",
        "kind",
        "exception_class",
        "worker_id",
        "started_at",
        "finished_at",
        "job_id",
    ]
    wide_columns = (*JobRowAdmin.wide_columns, "message", "traceback")
    ordering = ["-pk"]
    fields = [
        "job_link",
        "task",
        "attempts",
        "worker_id",
        "started_at",
        "finished_at",
        "kind",
        "exception_class",
        "shown_message",
        "shown_traceback",
    ]
    readonly_fields = ["job_link", "task", "shown_message", "shown_traceback"]


@admin.register(IsolatedRun)
class IsolatedRunAdmin(JobRowAdmin):
    """Tasks in processes of their own: where, since when, and what they wrote."""

    list_display = [
        *("task", "attempts", "node", "pid", "started_at", "finished_at", "exit"),
        "job_id",
    ]
    wide_columns = (*JobRowAdmin.wide_columns, "output")
    ordering = ["-pk"]
    fields = [
        *("job_link", "task", "attempts", "node", "pid"),
        *("reserved_at", "started_at", "finished_at", "exit", "shown_output"),
    ]
    readonly_fields = ["job_link", "task", "shown_output"]

    @admin.display(description=_("output"))
    def shown_output(self, run: IsolatedRun) -> Any:
        return display.block(run.output)
