"""What workers do ◀──▶ what an operator wants them to do, without a restart.

A wish is a row of its own, for one process. The worker finds it about as soon as a
request to cancel a job, and goes on with other queues or threads.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from robust_queue.configuration import WorkerConfiguration
from robust_queue.exceptions import ConfigurationError, TuningError
from robust_queue.models import Process, Tuning
from robust_queue.stores.conflicts import retried

from .wake import tell_of_tuning
from .workers import WorkerStatus, worker

# Characters of all queues together, so that a worker can hand them down.
MOST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Wish:
    """What a worker is to change; what is not said is as configured."""

    threads: int | None = None
    queues: tuple[str, ...] = ()
    is_quiet: bool = False

    def applied_to(self, configured: WorkerConfiguration) -> WorkerConfiguration:
        """The configuration with this changed; a ConfigurationError for nonsense."""
        return replace(
            configured,
            threads=configured.threads if self.threads is None else self.threads,
            queues=self.queues or configured.queues,
            # It has processes for so many since it was started.
            isolated=configured.most_isolated,
        )

    @property
    def facts(self) -> dict[str, Any]:
        """As it is told in the row of a process; nothing if nothing is wished."""
        given = {
            "threads": self.threads,
            "queues": list(self.queues),
            "quiet": self.is_quiet,
        }
        return {name: value for name, value in given.items() if value}

    @property
    def text(self) -> str:
        return json.dumps(self.facts, ensure_ascii=False)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        queues = tuple(facts.get("queues", ()))
        return cls(facts.get("threads"), queues, facts.get("quiet") is True)


class Orders(NamedTuple):
    """What somebody has asked of a worker, and what of its whole household."""

    # None if nobody has said anything: it goes on as it does.
    wish: Wish | None = None
    # Of the process itself, so that nobody inherits it.
    is_to_stop: bool = False
    is_household_quiet: bool = False
    is_supervisor_to_stop: bool = False


def tune(
    database: str,
    named: UUID | str,
    *,
    threads: int | None = None,
    queues: Sequence[str] | None = None,
    reset: bool = False,
) -> WorkerStatus:
    """Have a worker run with other queues, or with more or fewer threads.

    What is not given stays as it is; with ``reset`` it goes back to what is configured.
    Returns the worker as it was. ``TuningError`` if there is no such worker, or if it
    cannot do that.
    """
    if threads is None and queues is None and not reset:
        raise TuningError("Nothing to change: give threads, queues or reset.")
    found = worker(database, named)
    _check(found, threads, queues)
    change = _changing(threads, queues, reset=reset)
    change_wish(database, found, change)
    tell_of_tuning(database)
    return found


def change_wish(
    database: str, found: WorkerStatus, change: Callable[[Wish], Wish], **asked: bool
) -> None:
    """Write what is wished of a worker, starting from what it goes on with."""
    retried(database, lambda: _write(database, found, change, asked))


def orders_for(
    database: str, process_id: UUID, supervisor_id: UUID | None = None
) -> Orders:
    """What is asked of this worker, in one statement."""
    ids = [process_id] if supervisor_id is None else [process_id, supervisor_id]
    rows = Tuning.objects.using(database).in_bulk(ids)
    own = rows.get(process_id)
    chief = None if supervisor_id is None else rows.get(supervisor_id)
    return Orders(
        None if own is None else _wish(own),
        own is not None and own.is_to_stop,
        chief is not None and chief.is_quiet,
        chief is not None and chief.is_to_stop,
    )


def forget_wishes(database: str) -> int:
    """Delete what was wished of workers that are gone; return how many there were."""
    process = Process.objects.filter(pk=OuterRef("process_id"))
    left = Tuning.objects.using(database).filter(~Exists(process))
    gone = list(left.values_list("pk", flat=True))
    if gone:
        rows = Tuning.objects.using(database).filter(pk__in=gone)
        retried(database, rows.delete)
    return len(gone)


def _check(
    found: WorkerStatus, threads: int | None, queues: Sequence[str] | None
) -> None:
    if found.is_external:
        raise TuningError(
            f"{found.name} is an external worker: it chooses its queues by itself. It "
            "can be made quiet, and be stopped."
        )
    wish = Wish(threads, tuple(queues or ()))
    try:
        wanted = wish.applied_to(WorkerConfiguration())
    except ConfigurationError as error:
        raise TuningError(str(error)) from error
    if queues is not None and not queues:
        raise TuningError("A worker serves at least one queue.")
    if wanted.ignored_patterns or any("," in each for each in wanted.queues):
        raise TuningError("A queue has no comma in its name, and '*' only at its end.")
    if len(",".join(wanted.queues)) > MOST_TEXT:
        raise TuningError(f"Too many queues: up to {MOST_TEXT:,} characters in all.")
    most = found.most_threads
    if threads is not None and most is not None and threads > most:
        raise TuningError(
            f"{found.name} can have up to {most:,} threads: it was given "
            "room for no more when it was started. Configure more, and restart it."
        )


def _changing(
    threads: int | None, queues: Sequence[str] | None, *, reset: bool
) -> Callable[[Wish], Wish]:
    def change(before: Wish) -> Wish:
        kept = Wish(is_quiet=before.is_quiet) if reset else before
        return replace(
            kept,
            threads=kept.threads if threads is None else threads,
            queues=kept.queues if queues is None else tuple(queues),
        )

    return change


def _write(
    database: str,
    found: WorkerStatus,
    change: Callable[[Wish], Wish],
    asked: Mapping[str, bool],
) -> None:
    tunings = Tuning.objects.using(database)
    with transaction.atomic(using=database):
        row = tunings.select_for_update().filter(pk=found.id).first()
        # Without a row it may go on with what was wished of the one before it.
        before = Wish.of(found.tuned) if row is None else _wish(row)
        after = change(before)
        values = {
            "threads": after.threads,
            "queues": ",".join(after.queues),
            "is_quiet": after.is_quiet,
            **asked,
        }
        tunings.update_or_create(pk=found.id, defaults=values)


def _wish(row: Tuning) -> Wish:
    queues = tuple(filter(None, row.queues.split(",")))
    return Wish(row.threads, queues, row.is_quiet)
