"""What is told of a recurring task beside its columns: in words, ahead, and behind."""

from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.admin import AdminSite
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from robust_queue import registry
from robust_queue.lifecycle.ticks import Timeline
from robust_queue.models import Job, RecurringExecution, RecurringTask

from . import display
from .databases import home_of

RUNS = 5
ENTRIES = 20
# To the second, because schedules can be; with its zone, because clocks are turned.
MOMENT = "D j M Y, H:i:s T"

STATES: dict[str, Promise] = {
    "active": gettext_lazy("active"),
    "paused": gettext_lazy("paused"),
    "orphaned": gettext_lazy("orphaned"),
    "retired": gettext_lazy("retired"),
}


class Entry(NamedTuple):
    """One line of the history."""

    moment: str
    outcome: str
    code: str  # of the outcome, whatever the language
    by_hand: bool
    duration: str
    remark: str
    job: Any


def is_declared(row: RecurringTask) -> bool:
    """Does it stand in code or settings, where alone it can be changed?"""
    return bool(row.static and row.retired_at is None)


def in_words(row: RecurringTask) -> str:
    """Its schedule as a sentence; the schedule itself if that makes no sense."""
    try:
        return Timeline.of(row).schedule.in_words()
    except ValueError:
        return row.schedule


def in_its_zone(row: RecurringTask, moment: datetime) -> str:
    """A moment by the clocks that the schedule goes by."""
    return _by_clocks_of(_clocks_of(row), moment)


def zone_of(row: RecurringTask) -> str:
    """The name of the zone whose clocks it goes by."""
    return row.timezone or settings.TIME_ZONE or "UTC"


def runs_of(row: RecurringTask) -> list[str]:
    """Its next instants by those clocks; ValueError if its schedule makes no sense."""
    timeline = Timeline.of(row)
    found = timeline.upcoming(timezone.now(), RUNS)
    return [_by_clocks_of(timeline.zone, each) for each in found]


def page_of(row: RecurringTask, site: AdminSite) -> dict[str, Any]:
    """What the page of a recurring task shows. One statement more."""
    runs = _runs(row)
    told = {
        "state": STATES[row.state],
        "words": in_words(row),
        "zone": zone_of(row),
        "notes": list(_notes(row)),
        "latest": runs,
        "history": [_entry(each, _clocks_of(row), site) for each in runs],
    }
    if row.state in {"active", "paused"}:
        try:
            told["runs"] = runs_of(row)
        except ValueError as error:
            told["trouble"] = str(error)
    return told


def remark(entry: RecurringExecution, until: str) -> str:
    """Why it came out so, and for how many instants in a row if for several."""
    reasons = filter(None, [entry.exception_class, entry.reason])
    return " ".join([*reasons, *_left_out(entry, until)])


def _notes(row: RecurringTask) -> Iterator[str]:
    if row.retired_at is not None:
        yield _("Nobody declares it any more: it does not run, and can be deleted.")
    elif row.static:
        yield _("Declared in code or settings: change it there.")
    if row.state == "orphaned":
        yield _("No scheduler that runs declares it, so that none runs it.")
    if row.state == "paused":
        yield _("Paused: its instants pass without a run.")
    if registry.find(row.task_path) is None:
        yield _("Its task is not declared here: no run of it can be enqueued.")


def _left_out(entry: RecurringExecution, until: str) -> Iterator[str]:
    if entry.skipped_until is None or entry.skipped_until == entry.run_at:
        return
    count = _("very many") if entry.skipped is None else entry.skipped
    yield _("(%(count)s until %(moment)s)") % {"count": count, "moment": until}


def _runs(row: RecurringTask) -> list[RecurringExecution]:
    entries = RecurringExecution.objects.using(home_of(row)).filter(task_key=row.key)
    return [*entries.order_by("-run_at")[:ENTRIES]]


def _entry(entry: RecurringExecution, zone: tzinfo, site: AdminSite) -> Entry:
    until = _by_clocks_of(zone, entry.skipped_until) if entry.skipped_until else ""
    return Entry(
        moment=_by_clocks_of(zone, entry.run_at),
        outcome=entry.get_outcome_display(),
        code=entry.outcome,
        by_hand=entry.by_hand,
        duration="" if entry.duration is None else display.duration(entry.duration),
        remark=remark(entry, until),
        job=entry.job_id and display.link(site, Job, entry.job_id, entry.job_id),
    )


def _clocks_of(row: RecurringTask) -> tzinfo:
    try:
        return Timeline.of(row).zone
    except ValueError:
        return timezone.get_default_timezone()


def _by_clocks_of(zone: tzinfo, moment: datetime) -> str:
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment, timezone.get_default_timezone())
    return date_format(moment.astimezone(zone), MOMENT)
