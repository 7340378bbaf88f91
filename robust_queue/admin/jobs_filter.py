"""By what jobs are filtered: one form beside their list."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from robust_queue.flow.keys import SEPARATOR
from robust_queue.models import Process, RecurringExecution

from .filter_choices import CHOICES
from .keyset import Bounds, id_in
from .tabs import LABELS, STATE

# Of a recurring task with more runs than these, the latest count.
LATEST_RUNS = 1_000

# An id is made just before its row says when: by how much clocks may disagree.
SLACK = timedelta(hours=1)

DAY = timedelta(days=1)
FIRST_DAY, LAST_DAY = date(1970, 1, 3), date(9000, 1, 1)
SMALLEST, LARGEST = -(2**15), 2**15 - 1

# These are in no index. Jobs that have them are looked for a stretch at a time.
UNINDEXED = frozenset(
    {"queue", "task", "priority", "error", "worker", "key"}
    | {"finished_from", "finished_until"}
)


def _name(label: Any, length: int, choices: str = "") -> forms.CharField:
    attrs = {"list": f"rqueue-{choices}", "autocomplete": "off"} if choices else {}
    widget = forms.TextInput(attrs=attrs)
    return forms.CharField(
        label=label, required=False, max_length=length, widget=widget
    )


def _day(label: Any) -> forms.DateField:
    return forms.DateField(
        label=label,
        required=False,
        input_formats=["%Y-%m-%d"],
        validators=[MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)],
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )


class FilterForm(forms.Form):
    """What can be asked for. A value that makes no sense is told, and passed over."""

    state = forms.ChoiceField(
        choices=[*LABELS.items()], required=False, widget=forms.HiddenInput
    )
    queue = _name(_("queue"), 128, "queues")
    task = _name(_("task"), 255, "tasks")
    priority = forms.IntegerField(
        label=_("priority"), required=False, min_value=SMALLEST, max_value=LARGEST
    )
    error = _name(_("exception"), 255, "errors")
    worker = _name(_("worker"), 128, "workers")
    recurring = _name(_("recurring task"), 255, "recurring")
    key = _name(_("concurrency key"), 255)
    enqueued_from = _day(_("enqueued from"))
    enqueued_until = _day(_("enqueued until"))
    finished_from = _day(_("finished from"))
    finished_until = _day(_("finished until"))


class JobsFilter(admin.ListFilter):
    """Everything at once: whoever looks for a job knows several things about it."""

    title = _("jobs")
    template = "admin/robust_queue/job/filter.html"

    def __init__(
        self, request: HttpRequest, params: Any, model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        names = self.expected_parameters()
        given = {name: params.pop(name)[-1] for name in names if name in params}
        self.form = FilterForm(given, auto_id="rqueue-by-%s")
        self.form.is_valid()
        wanted = self.form.cleaned_data.items()
        self.wanted = {name: value for name, value in wanted if value not in ("", None)}

    @property
    def state(self) -> str:
        """The state that all of the jobs have, if they have one in common."""
        implied = "failed" if "error" in self.wanted else ""
        return str(self.wanted.get(STATE, implied))

    @property
    def is_unindexed(self) -> bool:
        return bool(UNINDEXED & self.wanted.keys())

    @property
    def finds_few(self) -> bool:
        """The runs of a recurring task are found by its key."""
        return "recurring" in self.wanted

    @property
    def narrows(self) -> bool:
        """Is anything asked for besides a state?"""
        return bool(self.wanted.keys() - {STATE})

    def has_output(self) -> bool:
        return True

    @classmethod
    def names(cls) -> set[str]:
        """All that can be asked for."""
        return {*FilterForm.base_fields}

    def expected_parameters(self) -> list[Any]:
        return [*FilterForm.base_fields]

    def choices(self, changelist: Any) -> Iterator[Any]:
        given = changelist.params.items()
        others = [(name, value) for name, value in given if name not in self.names()]
        database = changelist.root_queryset.db
        lists = {f"rqueue-{name}": found(database) for name, found in CHOICES.items()}
        yield {"form": self.form, "others": others, "lists": lists}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        for condition in self._conditions():
            queryset = queryset.filter(condition)
        return queryset

    def bounds(self) -> Bounds:
        """Between which ids the jobs are: ids tell when they were made.

        No job was enqueued after it had finished.
        """
        wanted = self.wanted
        ends = [wanted[name] for name in _ENDS if name in wanted]
        found = {"pk__lt": _id_at(_start_of(min(ends) + DAY) + SLACK)} if ends else {}
        if "enqueued_from" in wanted:
            found["pk__gte"] = _id_at(_start_of(wanted["enqueued_from"]) - SLACK)
        return found

    def _conditions(self) -> Iterator[Q]:
        wanted = self.wanted
        if self.state:
            yield Q((f"{self.state}_execution__isnull", False))
        for name, lookup in _LOOKUPS.items():
            if name in wanted:
                yield Q((lookup, wanted[name]))
        for name, condition in _CONDITIONS.items():
            if name in wanted:
                yield condition(wanted[name])


_ENDS = ("enqueued_until", "finished_until")

_LOOKUPS = {
    "queue": "queue_name",
    "task": "task_path",
    "priority": "priority",
    "error": "failed_execution__exception_class",
}


def _is_run_by(worker: str) -> Q:
    """Of a worker, by its name, or by the id of one that is alive."""
    identity = id_in(worker)
    alive = Process.objects.filter(pk=identity) if identity else _named(worker)
    return (
        Q(finished_execution__worker_id=worker)
        | Q(failed_execution__worker_id=worker)
        | Q(claimed_execution__process_id__in=alive.values("pk"))
    )


def _named(worker: str) -> QuerySet[Process]:
    found: QuerySet[Process] = Process.objects.filter(name=worker)
    return found


def _is_run_of(recurring: str) -> Q:
    runs = RecurringExecution.objects.filter(task_key=recurring, job_id__isnull=False)
    latest = runs.order_by("-run_at").values_list("job_id", flat=True)[:LATEST_RUNS]
    return Q(pk__in=[*latest])


def _has_key(key: str) -> Q:
    """A job may have several keys, one under the other."""
    return (
        Q(concurrency_key=key)
        | Q(concurrency_key__startswith=f"{key}{SEPARATOR}")
        | Q(concurrency_key__endswith=f"{SEPARATOR}{key}")
        | Q(concurrency_key__contains=f"{SEPARATOR}{key}{SEPARATOR}")
    )


def _ended(lookup: str, moment: datetime) -> Q:
    return Q((f"finished_execution__finished_at__{lookup}", moment)) | Q(
        (f"failed_execution__finished_at__{lookup}", moment)
    )


_CONDITIONS: dict[str, Any] = {
    "worker": _is_run_by,
    "recurring": _is_run_of,
    "key": _has_key,
    "enqueued_from": lambda day: Q(enqueued_at__gte=_start_of(day)),
    "enqueued_until": lambda day: Q(enqueued_at__lt=_start_of(day + DAY)),
    "finished_from": lambda day: _ended("gte", _start_of(day)),
    "finished_until": lambda day: _ended("lt", _start_of(day + DAY)),
}


def _start_of(day: date) -> datetime:
    midnight = datetime.combine(day, time.min)
    return timezone.make_aware(midnight) if settings.USE_TZ else midnight


def _id_at(moment: datetime) -> UUID:
    """No id that was made at that moment or later is smaller."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=milliseconds << 80)
