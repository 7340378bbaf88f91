"""Isolation: tasks in processes of their own, which harm nothing else.

::

    worker ──fork──▶ nursery ──fork──▶ solitary (one task at a time)
      │ keeper (a thread) ◀──── wire ────▶ │
      └──▶ nursery: bear, signal      nursery ──▶ keeper: born, gone

A worker has threads, so it must not fork in the midst of its life. The nursery has
none: it is forked at the birth of the worker, before any thread is started and any
connection is opened, and forks whenever it is asked to.
"""

from collections.abc import Iterator

from robust_queue import registry
from robust_queue.aliases import backends
from robust_queue.configuration import WorkerConfiguration
from robust_queue.policies import Isolation


def expected(configuration: WorkerConfiguration) -> set[Isolation]:
    """The ways in which tasks may be run by a worker, as far as is known at its birth.

    A worker that was told to run nothing in processes of their own has one way only.
    """
    if not configuration.most_isolated:
        return {"thread"}
    return {configuration.isolation, *_declared()}


def _declared() -> Iterator[Isolation]:
    for task in registry.discover().values():
        yield from _said(task)
    for backend in backends():
        yield from _said(backend.queue_options.task_defaults)
        for policy in backend.queue_options.queue_defaults.values():
            yield from _said(policy)


def _said(declared: object) -> Iterator[Isolation]:
    found: Isolation | None = getattr(declared, "isolation", None)
    if found is not None:
        yield found
