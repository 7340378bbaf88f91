"""Rows of every table, made by hand: one job per row, each of them believable."""

from datetime import timedelta
from uuid import uuid4

from django.utils import timezone

from robust_queue.identifiers import new_job_id
from robust_queue.models import (
    ApiToken,
    Attempt,
    BlockedExecution,
    Cancellation,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    IsolatedRun,
    Job,
    NamedRequest,
    Operation,
    Pause,
    Process,
    RateBucket,
    ReadyExecution,
    RecurringExecution,
    RecurringTask,
    Rollup,
    ScheduledExecution,
    Semaphore,
    TaskPause,
    Tuning,
    UniqueLock,
)

TASK = "tests.testapp.tasks.note"
ARGUMENTS = '{"args":[42],"kwargs":{"to":"ada@example.org"}}'
TRACEBACK = 'Traceback (most recent call last):\n  File "shop.py", line 7\nValueError'


def job(**values):
    now = timezone.now()
    given = {"queue_name": "default", "backend": "default", "arguments": ARGUMENTS}
    return Job.objects.create(
        **{"id": new_job_id(), "task_path": TASK, "enqueued_at": now, **given, **values}
    )


def ready(of=None, **values):
    return ReadyExecution.objects.create(**_execution(of), **values)


def scheduled(of=None, **values):
    moment = timezone.now() + timedelta(hours=1)
    return ScheduledExecution.objects.create(
        **{**_execution(of), "scheduled_at": moment, **values}
    )


def blocked(of=None, **values):
    return BlockedExecution.objects.create(
        **_execution(of),
        **{"concurrency_key": "account-7", **values},
    )


def claimed(of=None, by=None, **values):
    by = by or process()
    return ClaimedExecution.objects.create(
        **{**_execution(of), "process_id": by.pk, "token": uuid4(), **values}
    )


def finished(of=None, **values):
    given = {**_ended(of), "result": '"done"', **values}
    return FinishedExecution.objects.create(**given)


def failed(of=None, **values):
    return FailedExecution.objects.create(**{**_ended(of), **_FAILURE, **values})


def attempt(of=None, **values):
    of = of or finished().job
    return Attempt.objects.create(**{**_ended(of), **_FAILURE, **values})


def isolated_run(of=None, **values):
    now = timezone.now()
    of = of or finished().job
    facts = {"attempts": 1, "node": "web", "pid": 7, "output": "Halfway there.\n"}
    moments = {"reserved_at": now, "started_at": now}
    return IsolatedRun.objects.create(**{"job": of, **facts, **moments, **values})


def process(kind="Worker", silent_for=timedelta(0), **values):
    identity = uuid4()
    moment = timezone.now() - silent_for
    return Process.objects.create(
        **{
            "id": identity,
            "kind": kind,
            "name": f"{kind.lower()}-{identity.hex[-8:]}@web:7",
            "pid": 7,
            "hostname": "web",
            "metadata": '{"queues": ["*"], "threads": 3}' if kind == "Worker" else "",
            "created_at": moment,
            "last_heartbeat_at": moment,
            **values,
        }
    )


def pause(**values):
    return Pause.objects.create(**{"queue_name": f"queue-{uuid4().hex[:8]}", **values})


def recurring_task(**values):
    return RecurringTask.objects.create(
        **{"key": uuid4().hex, "task_path": TASK, "schedule": "0 3 * * *", **values}
    )


def recurring_execution(**values):
    moment = timezone.now()
    return RecurringExecution.objects.create(
        **{"task_key": uuid4().hex, "job_id": uuid4(), "run_at": moment, **values}
    )


def semaphore(**values):
    given = {"value": 1, "limit": 1, "expires_at": timezone.now()}
    return Semaphore.objects.create(**{"key": uuid4().hex, **given, **values})


def cancellation(**values):
    given = {"job_id": uuid4(), "requested_at": timezone.now()}
    return Cancellation.objects.create(**{**given, **values})


def unique_lock(**values):
    return UniqueLock.objects.create(
        **{"key": uuid4().hex, "job_id": uuid4(), **values}
    )


def named_request(**values):
    given = {"job_id": uuid4(), "sent": uuid4().hex, "expires_at": timezone.now()}
    return NamedRequest.objects.create(**{"key": uuid4().hex, **given, **values})


def rate_bucket(**values):
    given = {"level": 1.0, "counted_at": timezone.now()}
    return RateBucket.objects.create(**{"key": uuid4().hex, **given, **values})


def task_pause(**values):
    return TaskPause.objects.create(
        **{"task_path": f"{TASK}-{uuid4().hex[:8]}", **values}
    )


def tuning(**values):
    return Tuning.objects.create(**{"process_id": uuid4(), "threads": 5, **values})


def operation(**values):
    given = {"verb": "retry", "criteria": '{"state": "failed"}', "newest": new_job_id()}
    return Operation.objects.create(
        **{"requested_at": timezone.now(), **given, **values}
    )


def rollup(**values):
    given = {"queue_name": "", "span": 60, "at": timezone.now(), "process_id": uuid4()}
    return Rollup.objects.create(**{**given, **values})


def api_token(**values):
    given = {"name": f"token {uuid4().hex[:8]}", "digest": uuid4().hex * 2}
    facts = {"scopes": "read", "created_at": timezone.now(), "created_by": "ada"}
    return ApiToken.objects.create(**{**given, **facts, **values})


# A job alone would be lost, so it comes with the row that tells where it stands.
MAKERS = {
    Job: lambda: ready().job,
    ReadyExecution: ready,
    ScheduledExecution: scheduled,
    BlockedExecution: blocked,
    ClaimedExecution: claimed,
    FailedExecution: failed,
    FinishedExecution: finished,
    Attempt: attempt,
    IsolatedRun: isolated_run,
    Process: process,
    Pause: pause,
    RecurringTask: recurring_task,
    RecurringExecution: recurring_execution,
    Semaphore: semaphore,
    UniqueLock: unique_lock,
    NamedRequest: named_request,
    Cancellation: cancellation,
    RateBucket: rate_bucket,
    TaskPause: task_pause,
    Tuning: tuning,
    Operation: operation,
    Rollup: rollup,
    ApiToken: api_token,
}

_FAILURE = {
    "exception_class": "builtins.ValueError",
    "message": "The card was refused.",
    "traceback": TRACEBACK,
}


def _execution(of):
    of = of or job()
    return {
        "job": of,
        "queue_name": of.queue_name,
        "priority": of.priority,
        "created_at": timezone.now(),
    }


def _ended(of):
    now = timezone.now()
    ended = {"attempts": 1, "worker_id": "w", "started_at": now, "finished_at": now}
    return {"job": of or job(), **ended}
