"""What a configuration comes to in its mode: seats, and the family that fills them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from robust_queue.configuration import ConfigurationOptions, WorkerConfiguration
from robust_queue.lifecycle.recur import anything_recurs
from robust_queue.recurrence import Recurrence
from robust_queue.rules import RunMode

from .families import Family
from .forked import ForkedFamily
from .isolation import expected
from .posts import Post, posts, scheduler
from .reserve import Reserve
from .threaded import ThreadedFamily


def family_of(
    options: ConfigurationOptions, *, let_go: Sequence[Callable[[], None]] = ()
) -> Family:
    """Processes, or threads of this one.

    ``let_go`` is what a process that is forked has to do away with first.
    """
    if options.mode is RunMode.ASYNC:
        return ThreadedFamily()
    return ForkedFamily(let_go=let_go)


def seats_of(
    database: str, options: ConfigurationOptions, recurrences: Sequence[Recurrence]
) -> list[Post]:
    """Every seat that is to be filled on this database."""
    if options.mode is RunMode.ASYNC:
        workers = [_in_one_process(each) for each in options.effective_workers]
        options = replace(options, workers=workers)
    return posts(database, options, recurrences)


def reserve_of(database: str, recurrences: Sequence[Recurrence]) -> Reserve | None:
    """Who is called up when a task is made to recur at run time, where none does yet.

    Or if one did that is declared no longer: somebody has to retire it. Nobody, if
    there is a scheduler anyway.
    """
    if recurrences:
        return None
    is_needed = partial(anything_recurs, database)
    return Reserve(scheduler(database, ()), is_needed)


def notices(options: ConfigurationOptions) -> Iterator[str]:
    """What of the configuration has no effect in its mode."""
    if options.mode is not RunMode.ASYNC:
        return
    workers = options.effective_workers
    if any(each.processes > 1 for each in workers):
        yield "In mode async all runs in one process: `processes` is ignored."
    if any(each.max_tasks or each.max_rss for each in workers):
        yield "In mode async nobody is replaced: `max_tasks`, `max_rss` are ignored."
    if any("process" in expected(each) for each in workers):
        yield "In mode async isolated tasks run in threads: there are no processes."


def _in_one_process(worker: WorkerConfiguration) -> WorkerConfiguration:
    return replace(worker, processes=1, max_tasks=None, max_rss=None, isolated=0)
