"""Task and arguments ──▶ a job, ready or scheduled.

Everything that can be wrong is found before the first row is written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from inspect import Parameter
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db import Error, connections, transaction
from django.utils import timezone

from robust_queue import registry, transactions
from robust_queue.arguments import check_size, dump_call, plain
from robust_queue.compat import (
    AnyResult,
    AnyTask,
    InvalidTask,
    TaskResult,
    TaskResultStatus,
)
from robust_queue.configuration import BackendOptions
from robust_queue.context import remembered
from robust_queue.declaration import Call
from robust_queue.exceptions import EnqueueError
from robust_queue.flow import Unique, concurrency, partitions
from robust_queue.identifiers import new_job_id
from robust_queue.models import FailedExecution
from robust_queue.stores import store_for
from robust_queue.stores.rows import LimitedJob, NewJob

from . import announce, unique
from .admit import admit
from .moments import as_stored
from .names import check_queue_name, check_queue_of_external
from .rates import with_demand
from .results import show_failure
from .signatures import signature_of
from .unique_keys import unique_key
from .wake import wake

TASK_PATH_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an alias of ``TASKS`` keeps its jobs, and under which options."""

    alias: str
    database: str
    options: BackendOptions

    def awaited_commit(self) -> str | None:
        """The database whose open transaction a job has to wait for, if any."""
        if transactions.is_open(self.database):
            return None
        others = (a for a in self.options.transaction_databases if a != self.database)
        return transactions.first_open(others)


@dataclass(slots=True)
class Prepared:
    """A job that has passed every check, and the result its caller will get."""

    job: NewJob
    result: AnyResult
    on_commit: bool
    destination: Destination
    # None: other jobs like it may wait and run at the same time.
    unique: Unique | None = None


def check(task: AnyTask) -> None:
    """Refuse a task that no job can be made of, whatever its arguments."""
    check_queue_name(task.queue_name)
    if len(task.module_path) > TASK_PATH_LENGTH:
        raise InvalidTask(
            f"Task {task.module_path!r}: the path of a task has at most "
            f"{TASK_PATH_LENGTH} characters."
        )
    if registry.is_external(task):
        check_queue_of_external(task)


def prepare(call: Call, destination: Destination) -> Prepared:
    """Check the arguments of a call and turn it into a job. Nothing is written."""
    task, options = call.task, destination.options
    _check_signature(task, call.args, call.kwargs)
    arguments = dump_call(call.args, call.kwargs)
    check_size(arguments, options.max_arguments_size, destination.alias)
    declared: Unique | None = getattr(task, "unique", None)
    key = unique_key(declared, call) if declared else ""
    job = NewJob(
        id=new_job_id(),
        task_path=task.module_path,
        backend=destination.alias,
        queue_name=task.queue_name,
        priority=int(task.priority),
        rank=options.priority_order.rank(int(task.priority)),
        arguments=arguments,
        run_after=_moment(task.run_after),
        enqueued_at=timezone.now(),
        metadata=with_demand(remembered(options), call),
        concurrency_key=_keys(call),
        unique_key=key,
        partition_key=_partition(call, options),
    )
    wish = getattr(task, "enqueue_on_commit", None)
    on_commit = options.enqueue_on_commit if wish is None else wish
    result, lock = _result(job, call), declared if key else None
    return Prepared(job, result, on_commit, destination, lock)


def _partition(call: Call, options: BackendOptions) -> str:
    """Whose job it is, in a queue where several take turns."""
    queue = options.queues.get(call.task.queue_name)
    if queue is None or queue.partition_by is None:
        return ""
    return partitions.key_of(queue.partition_by, call.task, call.args, call.kwargs)


def write(prepared: Sequence[Prepared]) -> None:
    """Write jobs now, or when the application's transaction commits.

    In the queue's own database the rows are part of the open transaction, whatever
    ``enqueue_on_commit`` says: they appear and vanish with it.
    """
    for destination, group in groupby(prepared, key=attrgetter("destination")):
        _deliver(list(group), destination.awaited_commit())


def _deliver(prepared: Sequence[Prepared], awaited: str | None) -> None:
    if awaited is None:
        _write_now(prepared)
        return
    now = [each for each in prepared if not each.on_commit]
    later = [each for each in prepared if each.on_commit]
    if now:
        _write_now(now)
    if later:
        writing = partial(_write_now, later, are_promised=True)
        transactions.on_commit(awaited, writing)


def _write_now(prepared: Sequence[Prepared], *, are_promised: bool = False) -> None:
    database = prepared[0].destination.database
    if written := _insert(prepared, database, are_promised=are_promised):
        tell(written)
        let_in(written)


def let_in(prepared: Sequence[Prepared]) -> None:
    """See to it that written jobs that need slots get some, or come to their end.

    If that is decided at once, their results tell.
    """
    limited = {each.job.id: each for each in prepared if each.job.is_limited}
    if limited:
        database = prepared[0].destination.database
        jobs = [limited_job(each.job) for each in limited.values()]
        discarded = admit(database, jobs)
        for row in FailedExecution.objects.using(database).filter(pk__in=discarded):
            show_failure(limited[row.pk].result, row)


def limited_job(job: NewJob) -> LimitedJob:
    keys = job.concurrency_key
    return LimitedJob(job.id, job.task_path, job.backend, job.queue_name, keys)


def tell(prepared: Sequence[Prepared]) -> None:
    """Wake idle workers for jobs that are written, and announce them."""
    database = prepared[0].destination.database
    due = (each.job for each in prepared if each.job.is_due)
    ready = {job.queue_name for job in due if not job.is_limited}
    if ready:
        wake(database, ready)
    awaits = transactions.is_open(database)
    now = [each.result for each in prepared if not (awaits and each.on_commit)]
    later = [each.result for each in prepared if awaits and each.on_commit]
    _announce(now)
    if later:
        # A hook like any other: the jobs are stored, whatever becomes of the news.
        transaction.on_commit(partial(_announce, later), using=database)


def _announce(results: Sequence[AnyResult]) -> None:
    """Tell of jobs that are stored, if there is anybody to be told."""
    for is_from_backport, group in groupby(results, key=_is_from_backport):
        if announce.is_heard("task_enqueued", is_from_backport=is_from_backport):
            for result in group:
                announce.enqueued(result)


def _is_from_backport(result: AnyResult) -> bool:
    return getattr(result.task, "from_backport", False)


def _keys(call: Call) -> str:
    # Mostly nothing is limited, and most calls are of such tasks.
    if not getattr(call.task, "concurrency", None):
        return ""
    return concurrency.keys_of(call.task, call.args, call.kwargs)


def _moment(run_after: datetime | None) -> datetime | None:
    """A moment as the project stores it, which every database can give back."""
    if run_after is None:
        return None
    try:
        return as_stored(run_after)
    except OverflowError as error:
        raise InvalidTask(f"run_after is out of reach: {run_after!r}.") from error


def _insert(
    prepared: Sequence[Prepared], database: str, *, are_promised: bool
) -> Sequence[Prepared]:
    """Write jobs; return those that are to run."""
    jobs = [each.job for each in prepared]
    try:
        if any(job.unique_key for job in jobs):
            return unique.insert(prepared, database, are_promised=are_promised)
        store_for(database).insert(jobs)
    except Error as error:
        what = jobs[0].task_path if len(jobs) == 1 else f"{len(jobs)} jobs"
        raise EnqueueError(
            f"Could not enqueue {what} in database {database!r}: {error}"
            f"{_consequence(database)}"
        ) from error
    return prepared


def _consequence(database: str) -> str:
    if not connections[database].in_atomic_block:
        return ""
    return (
        " The surrounding transaction is broken and must be rolled back; put the "
        "enqueue into an atomic block of its own to go on after such an error."
    )


def _result(job: NewJob, call: Call) -> AnyResult:
    return TaskResult(
        task=call.task,
        id=str(job.id),
        status=TaskResultStatus.READY,
        enqueued_at=job.enqueued_at,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=plain(list(call.args)),
        kwargs=plain(call.kwargs),
        backend=job.backend,
        errors=[],
        worker_ids=[],
    )


# ── Checks ─────────────────────────────────────────────────────────────────────


def _check_signature(
    task: AnyTask, args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    context = (None,) if task.takes_context else ()
    # To bind takes longer than all other checks, and most calls need no more than that.
    if not kwargs and len(context) + len(args) in _counts(task.func):
        return
    try:
        signature_of(task.func).bind(*context, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{task.module_path}(): {error}") from None


@lru_cache(maxsize=1024)
def _counts(function: Callable[..., Any]) -> range:
    """How many arguments will do if none of them is named; empty if some must be."""
    parameters = signature_of(function).parameters.values()
    required = [each for each in parameters if each.default is Parameter.empty]
    if any(each.kind is Parameter.KEYWORD_ONLY for each in required):
        return range(0)
    least = sum(each.kind in _BY_POSITION for each in required)
    return range(least, sum(each.kind in _BY_POSITION for each in parameters) + 1)


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
