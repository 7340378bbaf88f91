"""Who is there: supervisors, what they have started, and what each worker runs.

Only looks. Two statements, however many processes and jobs there are.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from robust_queue.configuration import current
from robust_queue.fields import UtcField
from robust_queue.models import ClaimedExecution, Process, Tuning
from robust_queue.models.processes import EXTERNAL, WORKING, DatabaseNow

from .workers import WorkerStatus, status_of

# Beyond, those that were heard of last are told.
MOST_PROCESSES = 500
JOBS_SHOWN = 20

NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True)
class Run:
    """A job that a worker runs, or has taken to run next."""

    job_id: UUID
    task_path: str
    lasts: timedelta


@dataclass(frozen=True, slots=True)
class Member:
    """A process, and how it is."""

    process: Process
    silent_for: timedelta
    is_alive: bool
    # What somebody has asked of it, whether or not it has heeded that yet.
    is_asked_to_be_quiet: bool = False
    is_asked_to_stop: bool = False
    # Of workers only.
    worker: WorkerStatus | None = None
    runs: Sequence[Run] = ()

    @property
    def is_quiet(self) -> bool:
        """Does it take nothing new? A supervisor's workers read that by themselves."""
        return self.worker.is_quiet if self.worker else self.is_asked_to_be_quiet

    @property
    def other_runs(self) -> int:
        """How many more jobs it has."""
        return self.worker.busy - len(self.runs) if self.worker else 0


@dataclass(frozen=True, slots=True)
class Household:
    """A supervisor, and those that it has started."""

    supervisor: Member
    members: Sequence[Member]


@dataclass(frozen=True, slots=True)
class Roster:
    """All processes of a database."""

    households: Sequence[Household]
    # Nobody who is alive would replace them if they died.
    orphans: Sequence[Member]
    # Somebody else sees to these.
    outsiders: Sequence[Member] = ()
    # There are more processes than are told of.
    is_cut: bool = False

    @property
    def everybody(self) -> list[Member]:
        """All of them, one after the other."""
        told = [[each.supervisor, *each.members] for each in self.households]
        return [*chain.from_iterable(told), *self.orphans, *self.outsiders]

    @property
    def workers(self) -> list[WorkerStatus]:
        """Those that are alive."""
        return [it.worker for it in self.everybody if it.is_alive and it.worker]


def roster(database: str) -> Roster:
    """Everybody that is written down, by name: the living and the silent."""
    latest = _processes(database).order_by("-last_heartbeat_at")
    found = list(latest[: MOST_PROCESSES + 1])
    told = sorted(found[:MOST_PROCESSES], key=lambda each: each.name)
    members = _members(database, told)
    supervisors = [each for each in members if each.process.kind == "Supervisor"]
    alive = {each.process.pk for each in supervisors if each.is_alive}
    children = defaultdict(list)
    for each in members:
        if each.process.kind not in ("Supervisor", EXTERNAL):
            chief = each.process.supervisor_id
            children[chief if chief in alive else None].append(each)
    return Roster(
        [Household(each, children[each.process.pk]) for each in supervisors],
        orphans=children[None],
        outsiders=[each for each in members if each.process.kind == EXTERNAL],
        is_cut=len(found) > len(told),
    )


def member_with_id(database: str, process_id: UUID) -> Member | None:
    """One of them by its id, however many others there are; None if it is not there."""
    rows = list(_processes(database).filter(pk=process_id))
    return next(iter(_members(database, rows)), None)


def _processes(database: str) -> Any:
    rows: Any = Process.objects.using(database)
    # The clock that heartbeats are written by.
    with_clock = rows.annotate(now=DatabaseNow(output_field=UtcField()))
    asked = Tuning.objects.filter(pk=OuterRef("pk"))
    return with_clock.annotate(
        to_be_quiet=Exists(asked.filter(is_quiet=True)),
        to_stop=Exists(asked.filter(is_to_stop=True)),
    )


def _members(database: str, processes: Sequence[Any]) -> list[Member]:
    claims = _claims(database, [it.pk for it in processes if it.kind in WORKING])
    return [_member(each, claims.get(each.pk, [])) for each in processes]


def _claims(
    database: str, workers: Iterable[UUID]
) -> Mapping[UUID, list[tuple[Any, ...]]]:
    """The oldest claims of each worker, and how many it has in all."""
    rows = ClaimedExecution.objects.using(database).filter(process_id__in=workers)
    worker = F("process_id")
    counted = rows.annotate(
        place=Window(RowNumber(), partition_by=worker, order_by=F("pk").asc()),
        held=Window(Count("pk"), partition_by=worker),
    )
    some = counted.filter(place__lte=JOBS_SHOWN).order_by("process_id", "pk")
    claims = defaultdict(list)
    for process_id, *facts in some.values_list(
        "process_id", "pk", "job__task_path", "created_at", "held"
    ):
        claims[process_id].append(tuple(facts))
    return claims


def _member(process: Any, claims: Sequence[tuple[Any, ...]]) -> Member:
    silent_for = max(process.now - process.last_heartbeat_at, NO_TIME)
    is_alive = silent_for <= current().process_alive_threshold
    facts = process, silent_for, is_alive, process.to_be_quiet, process.to_stop
    if process.kind not in WORKING:
        return Member(*facts)
    held = claims[0][-1] if claims else 0
    now = timezone.now()
    runs = [Run(job_id, path, _since(at, now)) for job_id, path, at, _ in claims]
    return Member(*facts, status_of(process, held), runs)


def _since(at: datetime, now: datetime) -> timedelta:
    # Another machine's clock may be ahead of this one's.
    return max(now - at, NO_TIME)
