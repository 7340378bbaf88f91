"""What somebody should look at, in plain words: for those who open the overview.

Only looks, and no further than it must: each question is answered by an index.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from robust_queue.configuration import current
from robust_queue.models import (
    BlockedExecution,
    Pause,
    RecurringTask,
    ScheduledExecution,
    TaskPause,
)
from robust_queue.models.processes import EXTERNAL, WORKER
from robust_queue.models.queues import in_force
from robust_queue.stores.bloat import bloat

from .busiest import Busiest
from .moments import by_the_clock
from .roster import Roster

# What somebody who is alive would have seen to by now.
OVERDUE = timedelta(minutes=1)
# For so long a job may well wait for its slot.
LONG_BLOCKED = timedelta(minutes=10)
# As many are named one by one.
NAMED = 3


@dataclass(frozen=True, slots=True)
class Alarm:
    """A sentence, and the page that tells more of it."""

    text: str
    page: str = ""
    # What that page is to be filtered by.
    query: dict[str, str] = field(default_factory=dict)
    # Somebody has wanted it so: it is well to know, and nothing to mend.
    is_wanted: bool = False


def alarms(database: str, found: Roster, queues: Busiest) -> list[Alarm]:
    """Everything that looks wrong, the most fundamental first."""
    now = timezone.now()
    return [
        *_absent(found),
        *_missing(found),
        *_unserved(found, queues),
        *_overdue(database, now),
        *_stalled(database, now),
        *_paused(database, now),
        *_blocked(database, now),
        *_bloated(database),
    ]


def _absent(found: Roster) -> Iterator[Alarm]:
    alive = {each.process.kind for each in found.everybody if each.is_alive}
    if EXTERNAL in alive:
        alive.add(WORKER)  # all work may be done outside
    absent = {
        "Supervisor": _("No supervisor is alive: nobody replaces a worker that dies."),
        "Worker": _("No worker is alive: nothing that is ready gets run."),
        "Dispatcher": _("No dispatcher is alive: what is scheduled stays so."),
    }
    if not current().effective_dispatchers:
        del absent["Dispatcher"]  # nobody wants one
    for kind, text in absent.items():
        if kind not in alive:
            yield Alarm(text, "processtree")


def _missing(found: Roster) -> Iterator[Alarm]:
    count = sum(not each.is_alive for each in found.everybody)
    if count:
        text = ngettext(
            "%d process is missing: it was not heard of for too long.",
            "%d processes are missing: they were not heard of for too long.",
            count,
        )
        yield Alarm(text % count, "processtree")


def _unserved(found: Roster, queues: Busiest) -> Iterator[Alarm]:
    if not found.workers:
        return  # that there are none at all was said already
    if queues.unserved:
        text = _("Nobody serves these queues, and jobs wait there: %s.")
        yield Alarm(text % _named(queues.unserved), "queue")
    if queues.only_quiet:
        text = _("Only quiet workers serve these queues: %s.")
        yield Alarm(text % _named(queues.only_quiet), "processtree")


def _overdue(database: str, now: datetime) -> Iterator[Alarm]:
    rows = ScheduledExecution.objects.using(database).order_by("scheduled_at")
    due = rows.values_list("scheduled_at", flat=True).first()
    if due is not None and due < now - OVERDUE:
        text = _("Scheduled jobs are overdue, the first since %s.")
        yield Alarm(text % by_the_clock(due), "job", {"state": "scheduled"})


def _stalled(database: str, now: datetime) -> Iterator[Alarm]:
    rows = RecurringTask.objects.using(database).filter(enabled=True, retired_at=None)
    late = rows.filter(next_run_at__lt=now - OVERDUE).order_by("next_run_at")
    keys = [*late.values_list("key", flat=True)[: NAMED + 1]]
    if keys:
        text = _("Recurring tasks are overdue, so no scheduler seems to run: %s.")
        yield Alarm(text % _named(keys), "recurringtask")


def _paused(database: str, now: datetime) -> Iterator[Alarm]:
    for model, column, text in (
        (Pause, "queue_name", _("Paused queues: %s.")),
        (TaskPause, "task_path", _("Paused tasks: %s.")),
    ):
        rows = model._default_manager.using(database).filter(in_force(now))
        names = [*rows.order_by(column).values_list(column, flat=True)[: NAMED + 1]]
        if names:
            yield Alarm(text % _named(names), "queue", is_wanted=True)


def _blocked(database: str, now: datetime) -> Iterator[Alarm]:
    # Ids tell when jobs were made: the smallest is the one that has waited longest.
    rows = BlockedExecution.objects.using(database).order_by("pk")
    oldest = rows.values_list("concurrency_key", "created_at").first()
    if oldest and oldest[1] < now - LONG_BLOCKED:
        key, since = oldest
        text = _("Since %(since)s jobs wait for a slot of the key “%(key)s”.")
        yield Alarm(
            text % {"since": by_the_clock(since), "key": key}, "semaphore", {"q": key}
        )


def _bloated(database: str) -> Iterator[Alarm]:
    found = bloat(database)
    for table, count in found.tables.items():
        text = _("Table %(table)s has %(count)s dead rows, which slows polls down.")
        yield Alarm(text % {"table": table, "count": f"{count:,}"})
    if found.oldest_transaction:
        text = _("A transaction has been open for %s: vacuum cannot work.")
        yield Alarm(text % str(found.oldest_transaction).partition(".")[0])


def _named(names: Sequence[str]) -> str:
    more = ["…"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])
