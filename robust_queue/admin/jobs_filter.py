"""By what jobs are filtered: one form beside their list."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.search import Bounds, JobSearch
from robust_queue.lifecycle.search_words import LARGEST, LENGTHS, SMALLEST

from .filter_choices import CHOICES
from .tabs import LABELS, STATE

DAY = timedelta(days=1)
FIRST_DAY, LAST_DAY = date(1970, 1, 3), date(9000, 1, 1)


def _name(label: Any, name: str, choices: str = "") -> forms.CharField:
    attrs = {"list": f"rqueue-{choices}", "autocomplete": "off"} if choices else {}
    widget = forms.TextInput(attrs=attrs)
    return forms.CharField(
        label=label, required=False, max_length=LENGTHS[name], widget=widget
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
    queue = _name(_("queue"), "queue", "queues")
    task = _name(_("task"), "task", "tasks")
    priority = forms.IntegerField(
        label=_("priority"), required=False, min_value=SMALLEST, max_value=LARGEST
    )
    error = _name(_("exception"), "error", "errors")
    worker = _name(_("worker"), "worker", "workers")
    recurring = _name(_("recurring task"), "recurring", "recurring")
    key = _name(_("concurrency key"), "key")
    enqueued_from = _day(_("enqueued from"))
    enqueued_until = _day(_("enqueued until"))
    finished_from = _day(_("finished from"))
    finished_until = _day(_("finished until"))


class JobsFilter(admin.ListFilter):
    """Everything at once: whoever looks for a job knows several things about it."""

    title = _("jobs")
    parameter_name = "jobs"  # it has many; themes ask each filter for one
    template = "admin/robust_queue/job/filter.html"

    def __init__(
        self, request: HttpRequest, params: Any, model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        names = self.expected_parameters()
        given = {name: params.pop(name)[-1] for name in names if name in params}
        self.form = FilterForm(given, auto_id="rqueue-by-%s")
        self.form.is_valid()
        self.search = search_of(self.form.cleaned_data)

    @property
    def state(self) -> str:
        """The state that all of the jobs have, if they have one in common."""
        return self.search.common_state

    @property
    def narrows(self) -> bool:
        """Is anything asked for besides a state?"""
        return bool(self.search.given.keys() - {STATE})

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
        return self.search.narrowed(queryset)

    def bounds(self) -> Bounds:
        """Between which ids the jobs are."""
        return self.search.bounds()


def search_of(cleaned: dict[str, Any]) -> JobSearch:
    """What the form asks for: days are those of whoever looks."""
    wanted = {name: value for name, value in cleaned.items() if value not in ("", None)}
    for name in wanted.keys() & _DAYS.keys():
        wanted[name] = _start_of(wanted[name] + _DAYS[name])
    return JobSearch(**wanted)


# A day is meant from its beginning, or to its end.
_DAYS = {
    "enqueued_from": timedelta(0),
    "enqueued_until": DAY,
    "finished_from": timedelta(0),
    "finished_until": DAY,
}


def _start_of(day: date) -> datetime:
    midnight = datetime.combine(day, time.min)
    return timezone.make_aware(midnight) if settings.USE_TZ else midnight
