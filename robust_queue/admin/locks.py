"""What is counted or locked across jobs."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from robust_queue.models import Cancellation, Job, NamedRequest, RateBucket, UniqueLock

from . import display
from .base import ReadOnlyAdmin


@admin.register(RateBucket)
class RateBucketAdmin(ReadOnlyAdmin):
    """How much of each rate is left."""

    list_display = ["key", "level", "counted_at", "spread_to"]
    name_lookups = ("key",)
    search_help_text = _("The whole key.")
    ordering = ["key"]


@admin.register(Cancellation)
class CancellationAdmin(ReadOnlyAdmin):
    """Whose end somebody has asked for while they ran."""

    list_display = ["job_id", "requested_at"]
    id_lookups = ("job_id",)
    search_help_text = _("The id of a job.")
    ordering = ["requested_at"]
    fields = ["job_link", "requested_at"]
    readonly_fields = ["job_link"]

    @admin.display(description=_("job"))
    def job_link(self, request: Cancellation) -> Any:
        return display.link(self.admin_site, Job, request.job_id, request.job_id)


@admin.register(UniqueLock)
class UniqueLockAdmin(ReadOnlyAdmin):
    """Which job keeps others like it from being enqueued."""

    list_display = ["key", "job_id", "expires_at"]
    id_lookups = ("job_id",)
    name_lookups = ("key",)
    search_help_text = _("The id of a job, or the whole key.")
    ordering = ["key"]
    fields = ["key", "job_link", "expires_at"]
    readonly_fields = ["job_link"]

    @admin.display(description=_("job"))
    def job_link(self, lock: UniqueLock) -> Any:
        return display.link(self.admin_site, Job, lock.job_id, lock.job_id)


@admin.register(NamedRequest)
class NamedRequestAdmin(ReadOnlyAdmin):
    """Which job a request is answered with that comes again."""

    list_display = ["key", "job_id", "expires_at"]
    search_help_text = _("The whole key.")
    name_lookups = ("key",)
    ordering = ["key"]
    fields = ["key", "job_link", "expires_at"]
    readonly_fields = ["job_link"]

    @admin.display(description=_("job"))
    def job_link(self, request: NamedRequest) -> Any:
        return display.link(self.admin_site, Job, request.job_id, request.job_id)
