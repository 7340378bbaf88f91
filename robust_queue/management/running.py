"""Starting a supervisor: everything is looked at before the first process is forked."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from robust_queue import registry
from robust_queue.configuration import ConfigurationOptions, current
from robust_queue.lifecycle.install import recurrences_of
from robust_queue.processes.emptiness import Emptiness
from robust_queue.processes.forked import ForkedFamily
from robust_queue.processes.pidfile import Pidfile
from robust_queue.processes.posts import posts
from robust_queue.processes.supervisor import Supervisor

from .banner import advice, banner

logger = logging.getLogger("robust_queue")

_LEVELS = {0: logging.WARNING, 1: logging.INFO}


def run(
    database: str,
    *,
    pidfile: str | None,
    until_empty: bool,
    write: Callable[[str], object],
) -> int:
    """Run a supervisor and return the code that the process should exit with."""
    options = current()
    tasks = registry.discover()
    recurrences = recurrences_of(database)
    guard = Pidfile(pidfile) if pidfile else None
    supervisor = Supervisor(
        database,
        posts(database, options, recurrences),
        family=ForkedFamily(let_go=[guard.let_go] if guard else []),
        is_done=_done(database, options, until_empty=until_empty),
    )
    is_default = pidfile == ConfigurationOptions().supervisor_pidfile
    with _held(guard, is_default=is_default):
        supervisor.heed_signals()
        for line in banner(database, tasks=list(tasks), recurrences=recurrences):
            write(line)
        for line in advice(database, options.effective_workers):
            logger.warning("%s", line)
        return supervisor.run()


def show_logs(verbosity: int) -> None:
    """Let people see what happens, unless LOGGING says where they look for it."""
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(_LEVELS.get(verbosity, logging.DEBUG))


def _done(
    database: str, options: ConfigurationOptions, *, until_empty: bool
) -> Callable[[], bool]:
    if until_empty:
        return Emptiness(database, options.effective_workers)
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
