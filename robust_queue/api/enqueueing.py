"""New jobs, of tasks that are declared here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from robust_queue import registry
from robust_queue.backend import RobustQueueBackend
from robust_queue.compat import AnyResult, AnyTask, InvalidTask
from robust_queue.declaration import Call
from robust_queue.exceptions import EnqueueError, RobustQueueError
from robust_queue.lifecycle.enqueue import Prepared
from robust_queue.lifecycle.once import key_of, write_once
from robust_queue.lifecycle.redact import redacted_signature

from .access import Caller, Needs, audit, caller_in, database_of
from .calls import checked_call, task_at
from .deeds import ENQUEUE, LOOK
from .job_facts import made_of
from .job_schemas import MOST_AT_ONCE, Job, QueueText, TaskPriority, TaskText
from .jobs import router, told_of, told_of_all
from .problems import Problem, conflict, invalid
from .refusals import problem_of
from .wire import Moment, Request

tasks = Router(tags=["Tasks"])


class NewJob(Request):
    """A call of a task, as `.using(...).enqueue(...)` has it."""

    task: TaskText = Field(
        description="The path of a function, or the name of an external task."
    )
    args: list[Any] = Field(default=[])
    kwargs: dict[str, Any] = Field(default={})
    queue: QueueText | None = Field(default=None, description="If not its own.")
    priority: TaskPriority | None = None
    run_after: Moment | None = None
    request_id: UUID | None = Field(
        default=None,
        description="A new one for each job. Sent again within a day, as nobody heard "
        "the answer, it is answered with the job that is there.",
    )


class NewJobs(Request):
    """Calls to be enqueued together: all of them, or none."""

    jobs: list[NewJob] = Field(min_length=1, max_length=MOST_AT_ONCE)


class Enqueued(Schema):
    """The jobs of the calls, in the same order."""

    jobs: list[Job]


class TaskFacts(Schema):
    """A task that is declared here."""

    name: str
    kind: Literal["python", "external"]
    queue: str
    priority: int
    backend: str
    signature: str = Field(description="Defaults are redacted by their names.")
    description: str
    may_enqueue: bool = Field(description="Whether the caller may enqueue it.")


@router.post("", auth=Needs(ENQUEUE), response={201: Job})
def enqueue(request: HttpRequest, new: NewJob) -> Status[dict[str, Any]]:
    """Enqueue a call of a declared task, checked against its parameters."""
    caller, database = caller_in(request), database_of(request)
    (result,) = _written(request, [new], [_prepared(request, new)])
    audit(caller, "enqueue", new.task, result.id)
    return Status(201, told_of(database, made_of(result), caller))


@router.post("/enqueue", auth=Needs(ENQUEUE), response={201: Enqueued})
def enqueue_jobs(request: HttpRequest, wanted: NewJobs) -> Status[dict[str, Any]]:
    """Enqueue up to 500 calls in one transaction: all of them, or none.

    What is wrong with one is told with its place, such as `jobs.3.args.0`.
    """
    caller, database = caller_in(request), database_of(request)
    prepared = list(_all_prepared(request, wanted.jobs))
    results = _written(request, wanted.jobs, prepared)
    audit(caller, "enqueue", f"{len(results)} jobs")
    told = told_of_all(database, list(map(made_of, results)), caller)
    return Status(201, {"jobs": told})


@tasks.get("", auth=Needs(LOOK), response=list[TaskFacts])
def list_tasks(request: HttpRequest) -> list[dict[str, Any]]:
    """The tasks that are declared here, by name."""
    caller = caller_in(request)
    return [_told(caller, name, it) for name, it in sorted(registry.discover().items())]


def _all_prepared(request: HttpRequest, wanted: Sequence[NewJob]) -> Iterator[Prepared]:
    met = set[UUID]()
    for at, new in enumerate(wanted):
        try:
            if new.request_id in met:
                raise invalid("Another job of these has the same request_id.")
            yield _prepared(request, new)
        except Problem as problem:
            raise problem.within(f"jobs.{at}") from problem
        if new.request_id:
            met.add(new.request_id)


def _prepared(request: HttpRequest, new: NewJob) -> Prepared:
    """A job that has passed every check. Nothing is written."""
    caller_in(request).must(ENQUEUE, new.task)
    args, kwargs = checked_call(new.task, new.args, new.kwargs)
    task, backend = _varied(request, new)
    with _refusals_told():
        (prepared,) = backend.prepare_all([Call(task, args, kwargs)])
    return prepared


def _varied(request: HttpRequest, new: NewJob) -> tuple[AnyTask, RobustQueueBackend]:
    """The task as it is to be enqueued; a problem if it is kept somewhere else."""
    task = task_at(new.task)
    given: dict[str, Any] = {
        "queue_name": new.queue,
        "priority": new.priority,
        "run_after": new.run_after,
        "backend": request.GET.get("using"),
    }
    try:
        varied = task.using(**{k: v for k, v in given.items() if v is not None})
        backend = varied.get_backend()
    except (InvalidTask, ValueError, OverflowError) as refusal:
        raise invalid(str(refusal), "bad_call") from refusal
    if not isinstance(backend, RobustQueueBackend):
        raise conflict(f"{task.module_path} is of another backend.", "other_backend")
    if backend.database != database_of(request):
        detail = f"{task.module_path} is kept in another database: name its alias."
        raise conflict(detail, "other_database")
    return varied, backend


def _written(
    request: HttpRequest, wanted: Sequence[NewJob], prepared: Sequence[Prepared]
) -> list[AnyResult]:
    """What has become of the calls: new jobs, or those that are there already."""
    asker = caller_in(request).identity
    ids = [each.request_id for each in wanted]
    keys = [key_of(asker, each) if each else "" for each in ids]
    with _refusals_told():
        write_once(database_of(request), prepared, keys)
    return [each.result for each in prepared]


@contextmanager
def _refusals_told() -> Iterator[None]:
    try:
        yield
    except EnqueueError:
        raise
    except (InvalidTask, TypeError, RobustQueueError, ValueError) as refusal:
        raise problem_of(refusal) from refusal


def _told(caller: Caller, name: str, task: AnyTask) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "external" if registry.is_external(task) else "python",
        "queue": task.queue_name,
        "priority": task.priority,
        "backend": task.backend,
        "signature": str(redacted_signature(task.func)),
        "description": (task.func.__doc__ or "").strip().partition("\n")[0],
        "may_enqueue": caller.may(ENQUEUE, name),
    }
