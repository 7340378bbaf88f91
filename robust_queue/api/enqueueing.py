"""New jobs, of tasks that are declared here."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from robust_queue import registry
from robust_queue.backend import RobustQueueBackend
from robust_queue.compat import AnyTask, InvalidTask
from robust_queue.declaration import Call
from robust_queue.exceptions import EnqueueError, RobustQueueError
from robust_queue.lifecycle.enqueue import Prepared
from robust_queue.lifecycle.once import Name, write_once
from robust_queue.lifecycle.redact import redacted_signature

from .access import Caller, Needs, audit, caller_in, database_of
from .calls import checked_call, task_at
from .deeds import ENQUEUE, LOOK
from .job_facts import made_of
from .job_schemas import MOST_AT_ONCE, Job, QueueText, TaskPriority, TaskText
from .jobs import router, told_of, told_of_all
from .problems import Problem, conflict, invalid
from .refusals import problem_of, refused_among
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
    prepared = _prepared(request, new)
    with _refusals_told():
        is_new = write_once(database, [prepared], [_name(caller, new)])
    result = prepared.result
    audit(caller, "enqueue" if is_new else "ask again for", new.task, result.id)
    return Status(201, told_of(database, made_of(result), caller))


@router.post("/enqueue", auth=Needs(ENQUEUE), response={201: Enqueued})
def enqueue_jobs(request: HttpRequest, wanted: NewJobs) -> Status[dict[str, Any]]:
    """Enqueue up to 500 calls in one transaction: all of them, or none.

    What is wrong with one is told with its place, such as `jobs.3.args.0`.
    """
    caller, database = caller_in(request), database_of(request)
    prepared = list(_all_prepared(request, wanted.jobs))
    names = [_name(caller, new) for new in wanted.jobs]
    with _refusals_told(prepared):
        count = write_once(database, prepared, names)
    tasks = Counter(new.task for new in wanted.jobs)
    audit(caller, "enqueue", f"{count} new jobs, asked for {dict(tasks)}")
    known = [made_of(each.result) for each in prepared]
    return Status(201, {"jobs": told_of_all(database, known, caller)})


@tasks.get("", auth=Needs(LOOK), response=list[TaskFacts])
def list_tasks(request: HttpRequest) -> list[dict[str, Any]]:
    """The tasks that are declared here, by name."""
    caller = caller_in(request)
    return [_told(caller, name, it) for name, it in sorted(registry.discover().items())]


def _all_prepared(request: HttpRequest, wanted: Sequence[NewJob]) -> Iterator[Prepared]:
    met = set[UUID | None]()
    for at, new in enumerate(wanted):
        try:
            if new.request_id in met:
                raise invalid("Another job of these has the same request_id.")
            yield _prepared(request, new)
        except Problem as problem:
            problem.within(_place(at))
            raise
        met |= {new.request_id} - {None}


def _place(at: int) -> str:
    return f"jobs.{at}"


def _name(caller: Caller, new: NewJob) -> Name | None:
    """By what a request is known when it comes again, if it is to be."""
    if new.request_id is None:
        return None
    # When is not compared: it may be told as so much later than now.
    call = json.dumps([new.task, new.args, new.kwargs], sort_keys=True)
    return Name.of(caller.identity, new.request_id, call)


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


@contextmanager
def _refusals_told(together: Sequence[Prepared] = ()) -> Iterator[None]:
    """Of those that are enqueued together, also which of them were refused."""
    try:
        yield
    except EnqueueError:
        raise
    except (InvalidTask, TypeError, RobustQueueError, ValueError) as refusal:
        ids = [str(each.job.id) for each in together]
        places = map(_place, refused_among(ids, refusal))
        raise problem_of(refusal).within(*places) from refusal


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
