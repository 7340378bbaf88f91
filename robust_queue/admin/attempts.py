"""Earlier attempts of jobs, and the processes that isolated ones had."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from robust_queue.models import Attempt, IsolatedRun

from . import display, redaction
from .base import JobRowAdmin


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
    @redaction.concealed
    def shown_output(self, run: IsolatedRun) -> Any:
        return display.block(run.output)
