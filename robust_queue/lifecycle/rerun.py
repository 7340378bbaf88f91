"""Edit, and run again: a new job, in the place of one that waits or has failed.

Jobs are written once. So an edit never changes one: a worker that has read the old job
a moment before could run something that nobody has asked for. One that has finished
stays as it is, beside the new one: somebody may still ask for what it returned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from robust_queue import registry
from robust_queue.aliases import options_of
from robust_queue.arguments import load_call
from robust_queue.compat import AnyResult, InvalidTask
from robust_queue.context import remembering
from robust_queue.declaration import Call
from robust_queue.exceptions import (
    DeserializationError,
    DuplicateTaskError,
    UnknownTaskError,
    UnreplaceableError,
)
from robust_queue.models import Job
from robust_queue.stores import store_for
from robust_queue.stores.conflicts import retried

from .admit import limits_of, promote
from .enqueue import Destination, Prepared, check, let_in, prepare, tell
from .history import run_on
from .pause_task import is_aside
from .rates import demanded
from .recurred import unmarked
from .selection import STATES_TO_LEAVE, standing
from .unique import take_over

FINISHED = "finished"

# What is wrong with a change; the old job is still there. The first tells of arguments
# that do not fit or cannot be stored, the last of an alias that is not in TASKS.
REFUSALS = (
    TypeError,
    DeserializationError,
    DuplicateTaskError,
    InvalidTask,
    UnknownTaskError,
    UnreplaceableError,
    ImproperlyConfigured,
)


def rerun(
    database: str,
    job_id: UUID | str,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    run_after: datetime | timedelta | None = None,
) -> AnyResult:
    """Replace a job that waits or has failed by a new one, and return its result.

    What is not given stays as it was. Everything is checked as by an enqueue, and
    raises what an enqueue raises; then nothing has changed. The new job has an id and
    attempts of its own, and remembers in its metadata which one it was made from. The
    old one goes with its past, in the same transaction; if it has finished, it stays.

    Of several who replace a job one wins: ``UnreplaceableError`` if a worker has
    claimed it, or somebody has retried, discarded or replaced it. The key of a unique
    one is handed over; ``DuplicateTaskError`` if another job has the key of the new
    one.
    """
    job = _found(database, UUID(str(job_id)))
    given = {"queue_name": queue_name, "priority": priority, "run_after": run_after}
    call = _call(job, {k: v for k, v in given.items() if v is not None}, args, kwargs)
    prepared = _prepared(database, job, call)
    limits = limits_of([job])
    if not retried(database, partial(_replace, database, job, prepared)):
        raise _refusal(database, job.id)
    tell([prepared])
    # The old one may have had slots, and the new one may need others.
    promote(database, limits)
    let_in([prepared])
    return prepared.result


def _found(database: str, job_id: UUID) -> Job:
    jobs = Job.objects.using(database).with_state()
    job: Job | None = jobs.filter(pk=job_id).first()
    if job is None or job.state not in {FINISHED, *STATES_TO_LEAVE}:
        raise _refusal(database, job_id)
    return job


def _call(
    job: Job,
    changes: Mapping[str, Any],
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
) -> Call:
    as_it_was = {"queue_name": job.queue_name, "priority": job.priority}
    if job.state == "scheduled" and not is_aside(job.scheduled_execution.scheduled_at):
        as_it_was["run_after"] = job.scheduled_execution.scheduled_at
    task = registry.resolve(job.task_path)
    task = task.using(backend=job.backend, **{**as_it_was, **changes})
    if args is None or kwargs is None:
        old_args, old_kwargs = load_call(job.arguments)
        args = old_args if args is None else args
        kwargs = old_kwargs if kwargs is None else kwargs
    return Call(task, args, dict(kwargs))


def _prepared(database: str, job: Job, call: Call) -> Prepared:
    check(call.task)
    destination = Destination(job.backend, database, options_of(job.backend))
    prepared = prepare(call, destination)
    # The enqueuer's language and time zone, not the operator's; but the rate of what
    # it is called with now.
    # A run that has finished is in the history as it went; this one is beside it.
    before = unmarked(job.metadata) if job.state == FINISHED else job.metadata
    metadata = remembering(before, **demanded(call), rerun_of=str(job.id))
    return replace(prepared, job=replace(prepared.job, metadata=metadata))


def _replace(database: str, job: Job, prepared: Prepared) -> bool:
    with transaction.atomic(using=database):
        if job.state == FINISHED:
            take_over(database, prepared, job.id)
            return True
        store = store_for(database)
        is_ours = bool(store.discard([job.id], STATES_TO_LEAVE[job.state]))
        if is_ours:
            take_over(database, prepared, job.id)
            run_on(database, job.id, prepared.job.id)
        return is_ours


def _refusal(database: str, job_id: UUID) -> UnreplaceableError:
    state = standing(database, [job_id]).get(job_id, "gone")
    return UnreplaceableError(
        f"Job {job_id} is {state}: only a job that waits or has failed can be replaced,"
        " and only once; of one that has finished another one can be made."
    )
