"""Processes that work ◀──▶ that take nothing new; and ──▶ that end.

What is asked stands in a row of the process that was named. It is for that process
alone: a worker that was to stop is replaced, and who replaces it does not stop. That a
worker is quiet is handed down to whoever replaces it; that a household is quiet stands
with its supervisor, so that it also counts for workers that are born later.

Races that are left: a worker that leaves already may have a successor, which has not
inherited what is asked of the old one now. And a process may end before it reads what
was asked. Its row is swept away then, and a list of workers tells who goes on how.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from uuid import UUID

from robust_queue.configuration import current
from robust_queue.exceptions import TuningError
from robust_queue.models import Process, Tuning
from robust_queue.models.processes import WORKING
from robust_queue.stores.conflicts import retried

from .tune import Wish, change_wish
from .wake import tell_of_tuning
from .workers import one_of, status_of, workers

KINDS = (*WORKING, "Supervisor")


def quiet_process(database: str, named: UUID | str) -> Process:
    """Have a worker take nothing new, or all workers of a supervisor.

    They go on with what they run, and give back what they have not begun. Returns whom
    it was asked of; ``TuningError`` if there is no such process.
    """
    found = process_named(database, named)
    if found.kind == "Supervisor":
        _order(database, found, is_quiet=True)
    else:
        _change(database, found, partial(replace, is_quiet=True))
    tell_of_tuning(database)
    return found


def wake_process(database: str, named: UUID | str) -> Process:
    """Have a worker take jobs again, or all workers of a supervisor.

    Also those that somebody had made quiet one by one. A worker whose household is
    quiet cannot be woken alone: ``TuningError``.
    """
    found = process_named(database, named)
    if found.kind == "Supervisor":
        _wake_household(database, found)
    else:
        _refuse_alone(database, found)
        _change(database, found, _woken)
    tell_of_tuning(database)
    return found


def stop_process(database: str, named: UUID | str) -> Process:
    """Have a process end when what it has is over.

    A worker is replaced first, and its tasks may take as long as they like: that is a
    restart. A supervisor stops as if it had received TERM, with all it has started.
    """
    found = process_named(database, named)
    if found.kind == "Supervisor":
        _order(database, found, is_to_stop=True)
    else:
        _change(database, found, lambda wish: wish, is_to_stop=True)
    tell_of_tuning(database)
    return found


def is_to_stop(database: str, process_id: UUID) -> bool:
    """Has somebody asked for the end of this process?"""
    rows = Tuning.objects.using(database).filter(pk=process_id, is_to_stop=True)
    return rows.exists()


def process_named(database: str, named: UUID | str) -> Process:
    """The live worker or supervisor of that id or name, or beginning of a name."""
    words = "worker or supervisor", "workers or supervisors"
    return one_of(_alive(database, *KINDS), named, words)


def supervisors(database: str) -> list[Process]:
    """Those that are alive, by name."""
    return _alive(database, "Supervisor")


def _alive(database: str, *kinds: str) -> list[Process]:
    alive = Process.objects.using(database).filter(kind__in=kinds).order_by("name")
    return list(alive.heard_within(current().process_alive_threshold))


def _order(database: str, supervisor: Process, **asked: bool) -> None:
    rows = Tuning.objects.using(database)
    retried(database, lambda: rows.update_or_create(pk=supervisor.pk, defaults=asked))


def _change(
    database: str, worker: Process, change: Callable[[Wish], Wish], **asked: bool
) -> None:
    change_wish(database, status_of(worker, 0), change, **asked)


def _woken(wish: Wish) -> Wish:
    return replace(wish, is_quiet=False)


def _wake_household(database: str, supervisor: Process) -> None:
    _order(database, supervisor, is_quiet=False)
    household = [each for each in workers(database) if each.chief == supervisor.pk]
    rows = Tuning.objects.using(database).filter(is_quiet=True)
    asked = set(rows.values_list("pk", flat=True))
    for each in household:
        # Without a row, it may have inherited that it is to be quiet.
        if each.id in asked or each.tuned.get("quiet"):
            change_wish(database, each, _woken)


def _refuse_alone(database: str, worker: Process) -> None:
    chief = worker.supervisor_id
    rows = Tuning.objects.using(database).filter(pk=chief, is_quiet=True)
    if chief is not None and rows.exists():
        names = Process.objects.using(database).filter(pk=chief)
        name = names.values_list("name", flat=True).first() or chief
        raise TuningError(f"The whole household is quiet: wake its supervisor, {name}.")
