"""What all pages have in common: they are read only, and cheap on deep tables."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.core.exceptions import BadRequest, FieldDoesNotExist, ValidationError
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import cached_property
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from robust_queue.models import Job

from . import display, navigation, permissions, redaction
from .databases import database_of, has_changed

# As many rows as a list counts, shows and acts on. Who looks for more narrows it down.
REACH = 10_000
# And as many as are looked through for a task, to which no index leads.
SEARCHED = 2_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Stops counting where nobody would turn the pages any more."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[:REACH].count())


class LeanChangeList(ChangeList):
    """Leaves columns in the database that no list shows; some hold a megabyte."""

    def get_queryset(self, *args: Any, **kwargs: Any) -> QuerySet[Model]:
        model_admin: Any = self.model_admin
        rows = super().get_queryset(*args, **kwargs)
        if self.has_null:
            rows = rows.none()
        return rows.defer(*model_admin.wide_columns)

    @property
    def has_null(self) -> bool:
        """Is a null character asked for? PostgreSQL would not hear of it."""
        return any("\0" in value for value in chain(*self.filter_params.values()))

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        """The list's own, whatever the address asks for: Django would sort by it."""
        self.params.pop(ORDER_VAR, None)
        return [*super().get_ordering(request, queryset)]


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows change through the verbs of the lifecycle, never through a form."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # each would count the whole table
    paginator = BoundedPaginator
    sortable_by = ()  # only the list's own order follows an index
    wide_columns: Sequence[str] = ()
    # Lookups for a search: by id where an id is given, else by the whole name.
    id_lookups: Sequence[str] = ()
    name_lookups: Sequence[str] = ()

    # Columns that links of ours filter a list by, without a filter beside it.
    link_columns: Sequence[str] = ()

    # Does it stand in the index? Tables as they are would crowd it.
    is_in_index = False

    class Media:
        css = {"all": ["robust_queue/admin.css"]}
        js = ["robust_queue/live.js"]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    # Django asks these for its actions, by the names that an action is given.

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return permissions.may_do(request, permissions.RETRY)

    def has_discard_permission(self, request: HttpRequest) -> bool:
        return permissions.may_do(request, permissions.DISCARD)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return permissions.may_do(request, permissions.CANCEL)

    def has_run_permission(self, request: HttpRequest) -> bool:
        return permissions.may_do(request, permissions.RUN)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        return permissions.may_do(request, permissions.PAUSE)

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return permissions.may_do(request, permissions.MANAGE)

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        return super().get_model_perms(request) if self.is_in_index else {}

    def frame(self, request: HttpRequest) -> dict[str, Any]:
        """What stands around its pages."""
        return navigation.frame(self.admin_site, request, str(self.opts.model_name))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        title = capfirst(self.opts.verbose_name_plural)
        framed = {"title": title, **self.frame(request), **(extra_context or {})}
        return self.refusal(request) or super().changelist_view(request, framed)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        framed = {**self.frame(request), **(extra_context or {})}
        return self.refusal(request) or super().changeform_view(
            request, object_id, form_url, framed
        )

    def refusal(self, request: HttpRequest, back: str = "") -> HttpResponse | None:
        """The answer to a form about another database than the one that is chosen."""
        if not has_changed(request):
            return None
        told = gettext("Another database was chosen meanwhile: nothing was done.")
        self.message_user(request, told, messages.ERROR)
        return HttpResponseRedirect(back or request.get_full_path())

    def response_action(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        # Django would look for whatever was ticked, and stumble over what is no key.
        if not all(map(self._is_key, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            raise BadRequest("What was ticked is no row.")
        return super().response_action(request, *args, **kwargs)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Only by what there is a filter for.

        Django would look up every column, through the whole table. And of one that is
        concealed, the answers would tell letter by letter what is in it.
        """
        column = lookup.partition(LOOKUP_SEP)[0]
        try:
            self.opts.get_field(column)
        except FieldDoesNotExist:
            return super().lookup_allowed(lookup, value, request)
        return column in {*self.link_columns, *self._filtered_columns(request)}

    def _filtered_columns(self, request: HttpRequest) -> Iterator[str]:
        for each in self.get_list_filter(request):
            yield each if isinstance(each, str) else getattr(each, "parameter_name", "")

    def _is_key(self, text: str) -> bool:
        key = self.opts.pk
        try:
            key.run_validators(key.to_python(text))  # a number may be too large
        except ValidationError:
            return False
        return "\0" not in text

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).using(database_of(request))

    def get_object(
        self, request: HttpRequest, object_id: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if not self._is_key(str(object_id)):
            return None
        row: Any = super().get_object(request, object_id, *args, **kwargs)
        if row is not None:
            redaction.mark(request, row)
        return row

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LeanChangeList

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        return [*self.id_lookups, *self.name_lookups]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        identity = _id_in(term)
        # A list without ids may well have names that look like one.
        lookups = self.id_lookups if identity and self.id_lookups else self.name_lookups
        value = identity if lookups is self.id_lookups else term
        conditions = [(lookup, value) for lookup in lookups]
        if not conditions:
            return queryset.none(), False
        return queryset.filter(Q(*conditions, _connector=Q.OR)), False


class JobRowAdmin(ReadOnlyAdmin):
    """Rows that belong to a job, listed with its task and found by it.

    A task is looked for among the newest rows: no index leads from it to them.
    """

    id_lookups = ("job_id",)
    name_lookups = ("job__task_path",)
    search_help_text = _(
        "The id of a job, or the whole path of a task among the newest 2,000."
    )
    wide_columns: Sequence[str] = ("job__arguments", "job__metadata")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("job")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if term and _id_in(term) is None:
            queryset = _newest(queryset)
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description=_("task"))
    def task(self, row: Any) -> Any:
        return display.path(row.job.task_path)

    @admin.display(description=_("job"))
    def job_link(self, row: Any) -> Any:
        return display.link(self.admin_site, Job, row.job_id, row.job_id)

    @admin.display(description=_("arguments"))
    @redaction.concealed
    def shown_arguments(self, row: Any) -> Any:
        job, openly = row.job, redaction.is_open(row)
        return display.arguments(job.arguments, job.task_path, openly=openly)

    @admin.display(description=_("message"))
    @redaction.concealed
    def shown_message(self, row: Any) -> Any:
        return display.block(row.message)

    @admin.display(description=_("traceback"))
    @redaction.concealed
    def shown_traceback(self, row: Any) -> Any:
        return display.block(row.traceback)


def _newest(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Only so many, by the ids of their jobs; the jobs are told as well."""
    ids = rows.order_by("-job_id").values_list("job_id", flat=True)
    edge = ids[SEARCHED : SEARCHED + 1].first()
    return rows if edge is None else rows.filter(job_id__gt=edge, job__id__gt=edge)


def record(
    request: HttpRequest, rows: Iterable[Model], flag: int, message: str = ""
) -> None:
    """Write down who did it, where the admin writes down everything that is done."""
    user_id: Any = request.user.pk  # nobody gets here without having logged in
    LogEntry.objects.log_actions(user_id, rows, flag, message)


def _id_in(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None
