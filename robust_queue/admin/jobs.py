"""Jobs: their list, and the page of each."""

from typing import Any, cast

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.search import with_text
from robust_queue.lifecycle.why import why_not_running
from robust_queue.models import Attempt, IsolatedRun, Job
from robust_queue.models.jobs import JobQuerySet

from . import display, job_failures, job_record, job_timeline, jobs_list, redaction
from .bulk import BulkAdmin
from .databases import database_of, home_of
from .job_actions import JobPageAdmin
from .job_deeds import do_and_tell, ticked, verbs_for
from .jobs_filter import JobsFilter
from .tabs import STATE


class PastInline(admin.TabularInline):  # type: ignore[type-arg]
    """What is kept of a job's past, on its page; nothing where there is none."""

    template = "admin/robust_queue/job/past.html"
    ordering = ["attempts"]
    extra = 0
    can_delete = False
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).using(database_of(request))

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
class JobAdmin(BulkAdmin, JobPageAdmin):
    """What was asked for, and where it stands."""

    is_in_index = True
    list_display = [
        "task",
        "shown_state",
        "queue_name",
        "priority",
        "enqueued",
        "ended",
        "attempts",
        "short_id",
    ]
    list_display_links = ["task", "short_id"]
    list_filter = [JobsFilter]
    link_columns = tuple(JobsFilter.names())
    id_lookups = ("pk",)
    name_lookups = ()
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
        "timeline",
        "reasons",
        "errors",
        "shown_arguments",
        "shown_result",
        "queue_name",
        "priority",
        "backend",
        "keys",
        "unique_key",
        "recurring",
        "enqueued_at",
        "run_after",
        "shown_metadata",
        "record",
    ]
    readonly_fields = [
        *("id", "execution", "timeline", "reasons", "keys", "recurring"),
        *("errors", "shown_arguments", "shown_result", "shown_metadata", "record"),
    ]
    inlines = [AttemptInline, IsolatedRunInline]
    actions: Any = (
        *("retry_selected", "run_selected", "cancel_selected", "discard_selected"),
    )

    def get_queryset(self, request: HttpRequest) -> JobQuerySet:
        jobs: Any = super().get_queryset(request)
        return cast("JobQuerySet", jobs.with_state())

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """What there is to tell of it: most jobs have neither keys nor errors."""
        if obj is None:
            return self.fields
        ended = jobs_list.execution_of(obj) if obj.state == "finished" else None
        is_told = {
            "shown_result": ended is not None,
            "keys": obj.concurrency_key,
            "unique_key": obj.unique_key,
            "run_after": obj.run_after,
            "shown_metadata": obj.metadata,
        }
        return [name for name in self.fields if is_told.get(str(name), True)]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return jobs_list.JobChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if _is_proposed(request):
            return super().get_search_results(request, queryset, search_term)
        by_text = jobs_list.may_search_arguments(request)
        return with_text(queryset, search_term, in_arguments=by_text), False

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> Any:
        """Only what can be done to jobs under this tab."""
        told = {"action_location": action_location} if action_location else {}
        found = super().get_actions(request, **told)
        verbs = verbs_for(request, _state_in(request))
        return {k: v for k, v in found.items() if _VERB_OF.get(k) in verbs}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        ways = self.bulk_ways(request, _state_in(request))
        extra = {"bulk_ways": ways, **(extra_context or {})}
        return super().changelist_view(request, extra)

    @admin.action(description=_("Retry selected jobs"), permissions=["retry"])
    def retry_selected(self, request: HttpRequest, jobs: QuerySet[Any]) -> None:
        do_and_tell(request, jobs.db, "retry", ticked(request, jobs.db))

    @admin.action(description=_("Run selected jobs now"), permissions=["run"])
    def run_selected(self, request: HttpRequest, jobs: QuerySet[Any]) -> None:
        do_and_tell(request, jobs.db, "run_now", ticked(request, jobs.db))

    @admin.action(description=_("Cancel selected jobs"), permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, jobs: QuerySet[Any]) -> None:
        do_and_tell(request, jobs.db, "cancel", ticked(request, jobs.db))

    @admin.action(description=_("Discard selected jobs"), permissions=["discard"])
    def discard_selected(self, request: HttpRequest, jobs: QuerySet[Any]) -> None:
        do_and_tell(request, jobs.db, "discard", ticked(request, jobs.db))

    @admin.display(description=_("task"))
    def task(self, job: Job) -> Any:
        return display.near_path(job.task_path)

    @admin.display(description=_("state"))
    def shown_state(self, job: Job) -> Any:
        return jobs_list.badge(job)

    @admin.display(description=_("enqueued"))
    def enqueued(self, job: Job) -> str:
        return jobs_list.told(job.enqueued_at)

    @admin.display(description=_("finished"))
    def ended(self, job: Job) -> Any:
        return jobs_list.ended(job)

    @admin.display(description=_("attempts"))
    def attempts(self, job: Job) -> Any:
        return getattr(jobs_list.execution_of(job), "attempts", "-")

    @admin.display(description=_("id"))
    def short_id(self, job: Job) -> Any:
        return jobs_list.short_id(job)

    @admin.display(description=_("state"))
    def execution(self, job: Job) -> Any:
        row = jobs_list.execution_of(job)
        if row is None:
            return self.shown_state(job)
        return display.link(self.admin_site, type(row), job.pk, self.shown_state(job))

    @admin.display(description=_("so far"))
    def timeline(self, job: Job) -> Any:
        return job_timeline.timeline(self.admin_site, job)

    @admin.display(description=_("concurrency key"))
    def keys(self, job: Job) -> Any:
        return job_timeline.key_links(self.admin_site, job)

    @admin.display(description=_("recurring task"))
    def recurring(self, job: Job) -> Any:
        return job_timeline.recurring_link(self.admin_site, job)

    @admin.display(description=_("why is it not running?"))
    def reasons(self, job: Job) -> Any:
        return display.sentences(
            display.reason(self.admin_site, each)
            for each in why_not_running(home_of(job), job)
        )

    @admin.display(description=_("arguments"))
    @redaction.concealed
    def shown_arguments(self, job: Job) -> Any:
        openly = redaction.is_open(job)
        return display.arguments(job.arguments, job.task_path, openly=openly)

    @admin.display(description=_("result"))
    @redaction.concealed
    def shown_result(self, job: Job) -> Any:
        stored = job.finished_execution.result
        return display.result(stored, openly=redaction.is_open(job))

    @admin.display(description=_("metadata"))
    @redaction.concealed
    def shown_metadata(self, job: Job) -> Any:
        return display.structure(job.metadata, openly=redaction.is_open(job))

    @admin.display(description=_("what went wrong"))
    @redaction.concealed
    def errors(self, job: Job) -> Any:
        return job_failures.failures(job)

    @admin.display(description=_("record"))
    def record(self, job: Job) -> Any:
        return job_record.record(job)


_VERB_OF = {
    "retry_selected": "retry",
    "run_selected": "run_now",
    "cancel_selected": "cancel",
    "discard_selected": "discard",
}


def _is_proposed(request: HttpRequest) -> bool:
    """Does a field of some form ask, which would look through the whole table?"""
    match = request.resolver_match
    return match is not None and match.url_name == "autocomplete"


def _state_in(request: HttpRequest) -> str:
    """The state that all jobs of the list have, as far as its address tells."""
    implied = "failed" if request.GET.get("error") else ""
    return request.GET.get(STATE) or implied
