"""The workers of a database that are alive, as they tell of themselves."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Count, QuerySet

from robust_queue import registry
from robust_queue.configuration import WorkerConfiguration, current
from robust_queue.exceptions import ConfigurationError, TuningError
from robust_queue.models import ClaimedExecution, Process
from robust_queue.models.processes import EXTERNAL, WORKING


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A worker: where it runs, what it serves, and how much it has at hand."""

    id: UUID
    name: str
    hostname: str
    pid: int
    queues: tuple[str, ...]
    # Nobody knows of one outside in how many it works.
    threads: int | None
    # Jobs that it runs, or has taken to run next.
    busy: int = 0
    # How far it can grow.
    most_threads: int | None
    # It goes on with what it has, and takes nothing new.
    is_quiet: bool = False
    # Its supervisor.
    chief: UUID | None = None
    # In bytes.
    memory: int | None = None
    # It asks for jobs over the HTTP API.
    is_external: bool = False
    # Of one outside, as it has told.
    version: str = ""
    # What of this an operator has wished for.
    tuned: Mapping[str, Any]
    # What it leaves to workers outside, whatever it serves.
    left_out: Set[str] = frozenset()

    @property
    def is_busy(self) -> bool:
        """Has it a job for each thread, as far as anybody knows?"""
        return self.threads is not None and self.busy >= self.threads

    def serves(self, queue: str) -> bool:
        """Does it take jobs of this queue, unless it is quiet?"""
        return queue not in self.left_out and _served(self.queues).serves(queue)


N = TypeVar("N", WorkerStatus, Process)


def workers(database: str) -> list[WorkerStatus]:
    """Those that have been heard of lately, by name."""
    claims = ClaimedExecution.objects.using(database).order_by().values("process_id")
    counts = claims.annotate(n=Count("pk")).values_list("process_id", "n")
    busy = dict(counts)
    return [status_of(each, busy.get(each.pk, 0)) for each in _alive(database)]


def servers(database: str) -> list[WorkerStatus]:
    """The same ones, without a look at what they have at hand."""
    return [status_of(each, 0) for each in _alive(database)]


def worker(database: str, named: UUID | str) -> WorkerStatus:
    """The one of that id or name; the beginning of a name will do if it is one's only.

    None, or several, are a TuningError.
    """
    return one_of(workers(database), named, ("worker", "workers"))


def one_of(known: Sequence[N], named: UUID | str, words: tuple[str, str]) -> N:
    """The one of that id or name among these, which are called so, one and several."""
    one, several = words
    found = [each for each in known if str(named) in {str(each.id), each.name}]
    found = found or [each for each in known if each.name.startswith(str(named) or " ")]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found or known) or "none"
    which = f"Several {several} begin with" if found else f"No live {one} is called"
    raise TuningError(f"{which} {str(named)!r}. There are: {names}.")


def status_of(process: Process, busy: int) -> WorkerStatus:
    """A worker as its row tells of it, alive or not."""
    facts = _facts(process.metadata)
    is_external = process.kind == EXTERNAL
    usual = None if is_external else WorkerConfiguration().threads
    threads = _number(facts.get("threads"), usual)
    queues, tuned = facts.get("queues"), facts.get("tuned")
    return WorkerStatus(
        id=process.pk,
        name=process.name,
        hostname=process.hostname,
        pid=process.pid,
        queues=tuple(map(str, queues)) if isinstance(queues, list) else (),
        threads=threads,
        busy=busy,
        most_threads=_number(facts.get("most_threads"), threads),
        tuned=tuned if isinstance(tuned, dict) else {},
        is_quiet=facts.get("quiet") is True,
        chief=process.supervisor_id,
        memory=process.memory,
        is_external=is_external,
        version=str(facts.get("version") or ""),
        left_out=frozenset() if is_external else registry.external_queues(),
    )


def _alive(database: str) -> QuerySet[Process]:
    alive = Process.objects.using(database).filter(kind__in=WORKING).order_by("name")
    return alive.heard_within(current().process_alive_threshold)


@lru_cache
def _served(queues: tuple[str, ...]) -> WorkerConfiguration:
    """What serves these. Who tells none, or nonsense, is taken to serve all of them."""
    try:
        return WorkerConfiguration(queues=queues or ("*",))
    except ConfigurationError:
        return WorkerConfiguration()


def _facts(metadata: str) -> dict[str, Any]:
    """What it has told of itself, which another version may have told otherwise."""
    try:
        facts = json.loads(metadata)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _number(told: object, otherwise: int | None) -> int | None:
    return told if type(told) is int else otherwise
