"""New jobs, of tasks that are declared here."""

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from robust_queue import registry
from robust_queue.backend import RobustQueueBackend, enqueue_all
from robust_queue.compat import AnyResult, AnyTask, InvalidTask
from robust_queue.declaration import Call
from robust_queue.exceptions import EnqueueError, RobustQueueError
from robust_queue.lifecycle.redact import redacted_signature

from .access import Caller, Needs, audit, caller_in, database_of
from .calls import checked_call, task_at
from .deeds import ENQUEUE, LOOK
from .job_facts import made_of
from .job_schemas import Job, QueueText, TaskPriority, TaskText
from .jobs import router, told_of
from .problems import conflict, invalid
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
    caller.must(ENQUEUE, new.task)
    args, kwargs = checked_call(new.task, new.args, new.kwargs)
    result = _enqueued(_varied(request, new), args, kwargs)
    audit(caller, "enqueue", new.task, result.id)
    return Status(201, told_of(database, made_of(result), caller))


@tasks.get("", auth=Needs(LOOK), response=list[TaskFacts])
def list_tasks(request: HttpRequest) -> list[dict[str, Any]]:
    """The tasks that are declared here, by name."""
    caller = caller_in(request)
    return [_told(caller, name, it) for name, it in sorted(registry.discover().items())]


def _varied(request: HttpRequest, new: NewJob) -> AnyTask:
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
    return varied


def _enqueued(task: AnyTask, args: list[Any], kwargs: dict[str, Any]) -> AnyResult:
    try:
        (result,) = enqueue_all([Call(task, args, kwargs)])
    except EnqueueError:
        raise
    except (InvalidTask, TypeError, RobustQueueError, ValueError) as refusal:
        raise problem_of(refusal) from refusal
    return result


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
