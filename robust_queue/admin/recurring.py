"""Recurring tasks, and the instants at which they were enqueued."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from robust_queue.models import Job, RecurringExecution, RecurringTask

from . import display
from .base import ReadOnlyAdmin


@admin.register(RecurringTask)
class RecurringTaskAdmin(ReadOnlyAdmin):
    """What runs again and again."""

    list_display = [
        "key",
        "task",
        "schedule",
        "timezone",
        "queue_name",
        "enabled",
        "static",
        "next_run_at",
    ]
    list_filter = ["enabled", "static"]
    name_lookups = ("key", "task_path")
    search_help_text = _("The whole key, or the whole path of a task.")
    ordering = ["key"]
    fields = [
        "key",
        "task_path",
        "schedule",
        "timezone",
        "shown_arguments",
        "queue_name",
        "priority",
        "enabled",
        "static",
        "description",
        "next_run_at",
        "created_at",
        "updated_at",
    ]
    readonly_fields = ["shown_arguments", "created_at", "updated_at"]

    @admin.display(description=_("task"))
    def task(self, recurring: RecurringTask) -> Any:
        return display.path(recurring.task_path)

    @admin.display(description=_("arguments"))
    def shown_arguments(self, task: RecurringTask) -> Any:
        return display.arguments(task.arguments)


@admin.register(RecurringExecution)
class RecurringExecutionAdmin(ReadOnlyAdmin):
    """Which instant became which job."""

    list_display = ["task_key", "run_at", "created_at", "job_id"]
    id_lookups = ("job_id",)
    name_lookups = ("task_key",)
    search_help_text = _("The id of a job, or the whole key of a recurring task.")
    ordering = ["-pk"]
    fields = ["task_key", "run_at", "created_at", "job_link"]
    readonly_fields = ["created_at", "job_link"]

    @admin.display(description=_("job"))
    def job_link(self, row: RecurringExecution) -> Any:
        if row.job_id is None:
            return "-"
        return display.link(self.admin_site, Job, row.job_id, row.job_id)
