"""Jobs put into words, as far as whoever asks may see them."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.utils import timezone

from robust_queue.arguments import dump_call, plain_call, plain_result
from robust_queue.compat import AnyResult
from robust_queue.flow.keys import split
from robust_queue.lifecycle.redact import (
    UNREDACTABLE,
    is_redacted,
    is_searchable,
    redacted_call,
    redacted_value,
)
from robust_queue.lifecycle.selection import ENDED, KINDS
from robust_queue.lifecycle.why import why_not_running
from robust_queue.models import Job

from .access import Caller
from .deeds import LOOK, OVERWRITE, OVERWRITE_ALL, SEE_ALL, SEE_CONTENTS, Deed

MOST_ATTEMPTS = 100

GONE = "gone"

_WORDS = {kind.value: word for word, kind in KINDS.items()}


class Eyes:
    """What somebody may see of jobs; asked once, however many they are.

    Of rows of another kind it takes another leave to look at them.
    """

    def __init__(self, caller: Caller, look: Deed = LOOK) -> None:
        # To do something to what may not be looked at tells nothing of what is in it.
        self.may_look = caller.may(look)
        self.sees_all = self.may_look and caller.may(SEE_ALL)
        sees_some = self.may_look and caller.may(SEE_CONTENTS)
        self.sees_contents = self.sees_all or sees_some

    @property
    def contents(self) -> str:
        if self.sees_all:
            return "shown"
        return "redacted" if self.sees_contents else "hidden"

    @property
    def may_search(self) -> bool:
        """May they look for a text in arguments?"""
        return is_searchable(sees_contents=self.sees_contents, sees_all=self.sees_all)

    def call(self, task_path: str, arguments: str) -> dict[str, Any]:
        """What a task is called with, as that is stored."""
        if not self.sees_contents:
            return {"args": None, "kwargs": None}
        try:
            args, kwargs = plain_call(arguments)
            if not self.sees_all:
                args, kwargs = redacted_call(task_path, args, kwargs)
            # A hook may return anything, also what cannot be written.
            return {"args": _plain(args), "kwargs": _plain(kwargs)}
        except UNREDACTABLE:
            # What cannot be read may have secrets in it.
            return {"args": None, "kwargs": None, "contents": "hidden"}

    def result(self, text: str) -> Any:
        """What it has returned."""
        if not self.sees_contents or not text:
            return None
        try:
            value = plain_result(text)
            return _plain(value if self.sees_all else redacted_value(value))
        except UNREDACTABLE:
            return None

    def failing(self, row: Any, *, in_full: bool) -> dict[str, Any]:
        """How an attempt failed, from whatever row tells of it."""
        is_told = in_full and self.sees_contents
        return {
            "type": row.exception_class,
            "kind": _WORDS.get(row.kind, row.kind),
            "message": row.message if is_told else None,
            "traceback": row.traceback if is_told else None,
        }


def facts(job: Job, eyes: Eyes, *, with_arguments: bool) -> dict[str, Any]:
    """A job among others. Nothing more is read for it."""
    told = _call(job, eyes) | _standing(job, eyes)
    return told | eyes.call(job.task_path, job.arguments) if with_arguments else told


def facts_of_gone(job: Job, eyes: Eyes) -> dict[str, Any]:
    """A job that is not there, or no longer, by what is known of it."""
    told = _call(job, eyes) | _NOWHERE | {"since": timezone.now()}
    return told | eyes.call(job.task_path, job.arguments)


def _call(job: Job, eyes: Eyes) -> dict[str, Any]:
    """What was written once."""
    return {
        "id": job.id,
        "task": job.task_path,
        "queue": job.queue_name,
        "priority": job.priority,
        "enqueued_at": job.enqueued_at,
        "contents": eyes.contents,
        "args": None,
        "kwargs": None,
    }


def _standing(job: Job, eyes: Eyes) -> dict[str, Any]:
    """What changes, or goes."""
    row = execution_of(job)
    ended, state = job.state in ENDED, job.state
    return {
        "state": state,
        "attempts": row.attempts if row else 0,
        "since": job.updated_at,
        "due_at": row.scheduled_at if state == "scheduled" else None,
        "started_at": _started_at(state, row),
        "finished_at": row.finished_at if ended else None,
        "worker": _worker(state, row),
        "concurrency_keys": list(split(job.concurrency_key)),
        "error": eyes.failing(row, in_full=False) if state == "failed" else None,
    }


_NOWHERE = {
    "state": GONE,
    "attempts": 0,
    "due_at": None,
    "started_at": None,
    "finished_at": None,
    "worker": None,
    "concurrency_keys": [],
    "error": None,
}


def facts_in_full(database: str, job: Job, eyes: Eyes) -> dict[str, Any]:
    """All there is to tell of a job."""
    row, attempts = execution_of(job), list(_attempts(job, eyes))
    told = facts(job, eyes, with_arguments=True)
    if job.state == "failed":
        told["error"] = eyes.failing(row, in_full=True)
    return told | {
        "backend": job.backend,
        "run_after": job.run_after,
        "result": eyes.result(row.result) if job.state == "finished" else None,
        "attempts_made": attempts,
        "history": list(_history(job, attempts)),
        "reasons": [each.text for each in why_not_running(database, job)],
    }


def facts_of_gone_in_full(job: Job, eyes: Eyes) -> dict[str, Any]:
    """Likewise, with whatever else is told of those that are there."""
    return facts_of_gone(job, eyes) | {
        "backend": job.backend,
        "run_after": job.run_after,
        "result": None,
        "attempts_made": [],
        "history": [{"what": "enqueued", "at": job.enqueued_at}],
        "reasons": [],
    }


def made_of(result: AnyResult) -> Job:
    """The job that an enqueue has told of, whether or not it is there."""
    task = result.task
    return Job(
        id=UUID(result.id),
        task_path=task.module_path,
        backend=result.backend,
        queue_name=task.queue_name,
        priority=task.priority,
        run_after=task.run_after,
        arguments=dump_call(result.args, result.kwargs),
        enqueued_at=result.enqueued_at or timezone.now(),
    )


def check_sight(caller: Caller, task_path: str, arguments: str) -> None:
    """Refuse users who would write over arguments that they may not see."""
    if not caller.may(OVERWRITE_ALL):
        caller.must(OVERWRITE)
        if is_redacted(task_path, arguments):
            caller.must(OVERWRITE_ALL)


def execution_of(job: Job) -> Any:
    """The row that tells where it stands, or None."""
    return getattr(job, f"{job.state}_execution", None)


def _started_at(state: str, row: Any) -> Any:
    if state == "claimed":
        return row.created_at
    # One that was ended while it waited never began.
    return row.started_at if state in ENDED and row.worker_id else None


def _worker(state: str, row: Any) -> str | None:
    if state == "claimed":
        return str(row.process_id)
    return (row.worker_id or None) if state in ENDED else None


def _attempts(job: Job, eyes: Eyes) -> Iterator[dict[str, Any]]:
    """Those that are over, in order, and the one that was the last."""
    earlier = [*job.earlier_attempts.order_by("-attempts")[:MOST_ATTEMPTS]][::-1]
    for row in earlier:
        yield _attempt(row, eyes.failing(row, in_full=True))
    last = execution_of(job)
    if job.state in ENDED and last.worker_id:
        failing = eyes.failing(last, in_full=True) if job.state == "failed" else None
        yield _attempt(last, failing)


def _attempt(row: Any, error: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "number": row.attempts,
        "worker": row.worker_id,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "error": error,
    }


def _history(job: Job, attempts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"what": "enqueued", "at": job.enqueued_at}
    for each in attempts:
        yield {"what": "started", "at": each["started_at"]}
        end = each["error"]["kind"] if each["error"] else "succeeded"
        yield {"what": end, "at": each["finished_at"]}
    yield {"what": job.state, "at": job.updated_at}


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
