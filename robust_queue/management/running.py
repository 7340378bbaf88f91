"""Starting a supervisor: everything is looked at before the first process is forked."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from robust_queue import logs, registry
from robust_queue.configuration import ConfigurationOptions, current
from robust_queue.exceptions import RobustQueueError
from robust_queue.lifecycle.install import recurrences_of
from robust_queue.processes import titles
from robust_queue.processes.assembly import (
    family_of,
    notices,
    reserve_of,
    seats_of,
)
from robust_queue.processes.emptiness import Emptiness
from robust_queue.processes.exits import ExitCode, leave
from robust_queue.processes.pidfile import Pidfile
from robust_queue.processes.posts import Post, scheduler
from robust_queue.processes.reload import Reload, start_anew
from robust_queue.processes.reserve import Reserve
from robust_queue.processes.supervisor import Supervisor
from robust_queue.rules import RunMode

from .banner import advice, banner

logger = logging.getLogger("robust_queue")

Write = Callable[[str], object]


NOTHING_TO_RUN = (
    "There is nothing to run: no worker, no dispatcher, and the scheduler is left out. "
    "Look at --only and --skip-recurring, at their variables in the environment, and "
    "at 'workers' and 'dispatchers' in the settings."
)


class NothingToRunError(RobustQueueError):
    """Everything that a supervisor could run has been left out."""


class Plan(NamedTuple):
    """What a supervisor is to run: the configuration in force, and more."""

    database: str
    recurring: bool
    reloads: bool


def run(plan: Plan, *, pidfile: str | None, until_empty: bool, write: Write) -> int:
    """Run a supervisor and return the code that the process should exit with."""
    told, seats, reserve = _prepared(plan)
    guard = Pidfile(pidfile) if pidfile else None
    supervisor = Supervisor(
        plan.database,
        seats,
        family=family_of(current(), let_go=[guard.let_go] if guard else []),
        is_done=_done(plan.database, until_empty=until_empty),
        reload=Reload() if plan.reloads else None,
        reserve=reserve,
    )
    is_default = pidfile == ConfigurationOptions().supervisor_pidfile
    with _held(guard, is_default=is_default):
        supervisor.heed_signals()
        logs.take_over()
        titles.show(titles.title_of("Supervisor", {"database": plan.database}))
        for line in told:
            write(line)
        for line in advice(plan.database, current().effective_workers):
            logger.warning("%s", line)
        for line in notices(current()):
            logger.warning("%s", line)
        code = supervisor.run()
    if supervisor.is_to_start_anew:
        start_anew()
    if code != ExitCode.DONE and current().mode is RunMode.ASYNC:
        # What went back to the queue must not run on here while others begin it.
        leave(code)
    return code


def rehearse(plan: Plan, *, write: Write) -> int:
    """Tell what would run, and return whether everything could be loaded for it."""
    told, *_ = _prepared(plan)
    for line in told:
        write(line)
    return ExitCode.INCOMPLETE if registry.trouble() else ExitCode.DONE


def _prepared(plan: Plan) -> tuple[Iterator[str], list[Post], Reserve | None]:
    """Load every task; return the banner, the seats to be filled, and the reserve."""
    tasks = list(registry.discover())
    recurrences = recurrences_of(plan.database) if plan.recurring else None
    seats = seats_of(plan.database, current(), recurrences or ())
    reserve = None if recurrences is None else reserve_of(plan.database, recurrences)
    if not seats and plan.recurring:
        # Who asks for a scheduler alone has schedules that are made at run time.
        seats, reserve = [scheduler(plan.database, ())], None
    if not seats:
        raise NothingToRunError(NOTHING_TO_RUN)
    told = banner(
        plan.database, tasks=tasks, recurrences=recurrences, reloads=plan.reloads
    )
    return told, seats, reserve


def _done(database: str, *, until_empty: bool) -> Callable[[], bool]:
    if until_empty:
        return Emptiness(database, current().effective_workers)
    return lambda: False


@contextmanager
def _held(guard: Pidfile | None, *, is_default: bool) -> Iterator[None]:
    try:
        if guard:
            guard.take()
    except OSError as error:
        if not is_default:
            raise
        # Nobody asked for it: a file system that cannot be written to is no obstacle.
        logger.warning("There will be no pidfile: %s", error)
    try:
        yield
    finally:
        if guard:
            guard.remove()
