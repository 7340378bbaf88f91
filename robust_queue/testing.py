"""For the tests of applications: run the queue in the current process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

from django.db import DatabaseError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from . import registry
from .compat import AnyResult
from .lifecycle.claim import claim
from .lifecycle.dispatch import dispatch_due
from .lifecycle.pause_task import paused_tasks, set_aside
from .lifecycle.perform import Performed, perform
from .lifecycle.release import release
from .lifecycle.settle import settle
from .models import Job, Process
from .stores.rows import Claim

LIMIT = 10_000


def drain(
    *queues: str, database: str | None = None, limit: int = LIMIT
) -> list[AnyResult]:
    """Run everything that is ready or due, in order, and return the results.

    Jobs that are enqueued meanwhile are run too. Works inside ``TestCase``. After
    ``limit`` jobs it stops with an error, since a task that enqueues itself would
    otherwise go on for ever. Jobs of external tasks stay where they are.

    Rates are not obeyed: what a test finds must not depend on how fast it is.
    """
    alias = database or router.db_for_write(Job)
    results: list[AnyResult] = []
    with _registered(alias) as process:
        while (claimed := _next(alias, process, queues or ("*",))) is not None:
            if len(results) == limit:
                release(alias, [claimed])
                raise RuntimeError(
                    f"More than {limit:,} jobs: does a task enqueue itself?"
                )
            results.append(_run(claimed, alias, process))
    return results


def _next(alias: str, process: Process, queues: Sequence[str]) -> Claim | None:
    dispatch_due(alias)
    outside = sorted(registry.external_queues())
    while claims := claim(
        alias, process_id=process.id, queues=queues, left_out=outside
    ):
        if claims[0].task_path in paused_tasks(alias):
            claims = [*set_aside(alias, claims, worker_id=process.name)]
        if claims:
            return claims[0]
    return None


def _run(claimed: Claim, alias: str, process: Process) -> AnyResult:
    performed = _perform(claimed, alias, process)
    if settle(alias, [performed.outcome]):
        performed.announce()
    if isinstance(performed.error, KeyboardInterrupt):
        # Recorded like any other failure, but somebody wants to stop the tests.
        raise performed.error
    return performed.result


def _perform(claimed: Claim, alias: str, process: Process) -> Performed:
    """Run the job; leave the transactions of a test usable if the task broke them.

    In production nothing is open around a task, and an error of the database ends one
    statement. Here it would end the transaction of the whole test.
    """
    savepoints = [
        (connection, str(connection.savepoint()))
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block and not connection.needs_rollback
    ]
    performed = perform(claimed, database=alias, worker_id=process.name)
    for connection, savepoint in savepoints:
        _leave(connection, savepoint)
    return performed


def _leave(connection: BaseDatabaseWrapper, savepoint: str) -> None:
    try:
        connection.validate_no_broken_transaction()
        connection.savepoint_commit(savepoint)
    except DatabaseError:
        # Given up, by the server or by Django: back to where the task began.
        connection.needs_rollback = False
        connection.savepoint_rollback(savepoint)


@contextmanager
def _registered(alias: str) -> Iterator[Process]:
    """A row for this process, so that nobody takes its claims for orphans."""
    processes = Process.objects.using(alias)
    process = processes.register("Drain", identity=uuid4())
    try:
        yield process
    finally:
        processes.filter(pk=process.pk).delete()
