"""``manage.py robust_queue recurring``: what recurs, when, and how it went."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeAlias

from django.conf import settings
from django.core.management import CommandError
from django.core.management.base import OutputWrapper
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from robust_queue.exceptions import RobustQueueError
from robust_queue.lifecycle import timetable
from robust_queue.lifecycle.ticks import Timeline, timeline_of
from robust_queue.models import RecurringExecution, RecurringTask
from robust_queue.schedules import Schedule

from .tables import length, moment, table

HELP = "list what recurs, show its next and last runs, run it now, pause or remove it"

TITLES = ("KEY", "TASK", "SCHEDULE", "STATE", "NEXT RUN", "LAST")
RUNS = 5
ENTRIES = 10

Deed: TypeAlias = Callable[[str, str], str]


def add_arguments(parser: ArgumentParser) -> None:
    """Add what is to be done, and to what."""
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", title="actions", required=False
    )
    for name, words in _ACTIONS.items():
        action = actions.add_parser(name, help=words, description=words)
        if name == "preview":
            _add_schedule(action)
        elif name != "list":
            action.add_argument("names", nargs="+", metavar="KEY")


def _add_schedule(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="+", metavar="SCHEDULE", help="such as '30 6 * * mon-fri'"
    )
    parser.add_argument(
        "--timezone",
        metavar="ZONE",
        help="whose clocks it goes by, if not the project's",
    )


_ACTIONS = {
    "list": "list all of them, which is what happens without a word",
    "show": "show what some are, and their runs",
    "preview": "preview the runs of a schedule that is not in use",
    "run": "run some now, beside their schedules",
    "pause": "pause some, until they are resumed",
    "resume": "resume some",
    "remove": "remove some that were made at run time, or are declared no longer",
}


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Do it."""
    match options["action"] or "list":
        case "list":
            _list(database, out)
        case "preview":
            _preview(" ".join(options["names"]), options["timezone"], out)
        case "show":
            for name in options["names"]:
                _show(database, name, out)
        case deed:
            _do(DEEDS[deed], database, options["names"], out)


# ── Looking ────────────────────────────────────────────────────────────────────


def _list(database: str, out: OutputWrapper) -> None:
    found = list(_with_last(RecurringTask.objects.using(database)).order_by("key"))
    if not found:
        out.write("Nothing recurs here. Schedulers write down what is declared.")
        return
    rows = [
        (
            each.key,
            each.task_path,
            f"{each.schedule} {each.timezone}".strip(),
            each.state,
            moment(each.next_run_at) if each.state == "active" else "",
            f"{each.last_outcome or ''} {moment(each.last_run_at)}".strip(),
        )
        for each in found
    ]
    for line in table(TITLES, rows):
        out.write(line)


def _with_last(tasks: QuerySet[Any]) -> QuerySet[Any]:
    """Recurring tasks, each with what was written down of it last."""
    entries = RecurringExecution.objects.filter(task_key=OuterRef("key"))
    latest = entries.order_by("-run_at")
    annotated: QuerySet[Any] = tasks.annotate(
        last_outcome=Subquery(latest.values("outcome")[:1]),
        last_run_at=Subquery(latest.values("run_at")[:1]),
    )
    return annotated


def _entries(database: str, key: str) -> Any:
    rows = RecurringExecution.objects.using(database).filter(task_key=key)
    return rows.order_by("-run_at")


def _show(database: str, key: str, out: OutputWrapper) -> None:
    row = RecurringTask.objects.using(database).filter(key=key).first()
    if row is None:
        raise CommandError(f"There is no recurring task {key!r}.")
    for line in table((row.key, row.state), _facts(row)):
        out.write(line)
    if row.state in {"active", "paused"} and row.next_run_at is not None:
        _write_runs(Timeline.of(row), row.timezone, out)
    for entry in _entries(database, key)[:ENTRIES]:
        out.write(_told(entry))


def _facts(row: RecurringTask) -> Iterator[tuple[str, str]]:
    yield "task", row.task_path
    yield "schedule", f"{row.schedule} ({_words_of(row.schedule)})"
    yield "declared", "in code or settings" if row.static else "at run time"
    yield "if missed", row.get_on_missed_display()
    yield "if the last runs on", row.get_overlap_display()
    if row.description:
        yield "description", row.description


def _words_of(schedule: str) -> str:
    try:
        return Schedule(schedule).in_words()
    except ValueError:
        return "which nobody understands"


def _told(entry: RecurringExecution) -> str:
    parts = [f"{moment(entry.run_at)}  {entry.get_outcome_display()}"]
    if entry.by_hand:
        parts.append("by hand")
    if entry.skipped_until and entry.skipped_until != entry.run_at:
        number = "very many" if entry.skipped is None else f"{entry.skipped:,}"
        parts.append(f"{number} until {moment(entry.skipped_until)}")
    if entry.duration is not None:
        parts.append(f"in {length(entry.duration)}")
    parts += filter(None, [entry.exception_class, entry.reason])
    if entry.job_id:
        parts.append(f"job {entry.job_id}")
    return "  ".join(parts)


def _preview(text: str, zone: str | None, out: OutputWrapper) -> None:
    try:
        schedule, timeline = Schedule(text), timeline_of(text, zone)
    except ValueError as error:
        raise CommandError(str(error)) from error
    out.write(schedule.in_words())
    _write_runs(timeline, zone, out)


def _write_runs(timeline: Timeline, zone: str | None, out: OutputWrapper) -> None:
    out.write(f"Next runs, in {zone or settings.TIME_ZONE}:")
    for each in timeline.upcoming(timezone.now(), RUNS):
        out.write(f"  {_in_zone(each, timeline)}")


def _in_zone(at: datetime, timeline: Timeline) -> str:
    local = at.astimezone(timeline.zone) if timezone.is_aware(at) else at
    return f"{local:%a %Y-%m-%d %H:%M:%S %Z}".rstrip()


# ── Changing ───────────────────────────────────────────────────────────────────


def _do(deed: Deed, database: str, keys: list[str], out: OutputWrapper) -> None:
    problems = []
    for key in dict.fromkeys(keys):
        try:
            out.write(deed(database, key))
        except (RobustQueueError, ValueError) as error:
            problems.append(str(error))
    if problems:
        raise CommandError("\n".join(problems))


def _run(database: str, key: str) -> str:
    entry = timetable.run_now(database, key)
    return f"{key} is enqueued" + (f" as job {entry.job_id}." if entry.job_id else ".")


def _pause(database: str, key: str) -> str:
    has_changed = timetable.pause(database, key)
    return f"{key} is paused." if has_changed else f"{key} was paused already."


def _resume(database: str, key: str) -> str:
    return (
        f"{key} {'goes on' if timetable.resume(database, key) else 'was not paused'}."
    )


def _remove(database: str, key: str) -> str:
    timetable.unschedule(database, key)
    return f"{key} is removed."


DEEDS: dict[str, Deed] = {
    "run": _run,
    "pause": _pause,
    "resume": _resume,
    "remove": _remove,
}
