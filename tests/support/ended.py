"""Jobs that ended some time ago, made by hand or by the database itself."""

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from robust_queue.identifiers import new_job_id
from robust_queue.models import Attempt, FailedExecution, FinishedExecution, Job
from tests.support.backlog import _IDS, _NUMBERS
from tests.support.rows import TASK, TRACEBACK

MODELS = {"finished": FinishedExecution, "failed": FailedExecution}
DAY = timedelta(days=1)


def ended(state, *, ago, count=1, attempts=1, kind="", **of_job):
    """So many jobs that ended so long ago, a microsecond apart; their ids in order."""
    first = timezone.now() - ago
    moments = [first + timedelta(microseconds=i) for i in range(count)]
    ids = [new_job_id() for _ in moments]
    told = {"task_path": TASK, "backend": "default", "queue_name": "default", **of_job}
    Job.objects.bulk_create(
        [Job(id=pk, enqueued_at=first, arguments="{}", **told) for pk in ids]
    )
    how = {"result": "null"} if state == "finished" else {"kind": kind, **_FAILURE}
    MODELS[state].objects.bulk_create(
        [
            MODELS[state](
                job_id=pk, attempts=attempts, finished_at=at, **_begun(first), **how
            )
            for pk, at in zip(ids, moments, strict=True)
        ]
    )
    Attempt.objects.bulk_create(
        [
            Attempt(job_id=pk, attempts=n, finished_at=first, **_begun(first))
            for pk in ids
            for n in range(1, attempts)
        ]
    )
    return ids


def _begun(moment):
    return {"worker_id": "w", "started_at": moment}


_FAILURE = {"exception_class": "builtins.ValueError", "traceback": TRACEBACK}

_SPREAD = {
    "postgresql": "%s::timestamptz - n * interval '1 millisecond'",
    "mysql": "DATE_SUB(%s, INTERVAL n * 1000 MICROSECOND)",
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', %s, (-n / 1000.0) || ' seconds')",
}


def fill_with_ended(state, count, *, ago, task=TASK):
    """The same by the database itself, a millisecond apart, for deep tables."""
    vendor = connection.vendor
    moment = connection.ops.adapt_datetimefield_value(timezone.now() - ago)
    numbers = _NUMBERS[vendor].format(count=count)
    columns, values = _COLUMNS[state]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO robust_queue_jobs (id, task_path, backend, queue_name,"
            " priority, arguments, metadata, concurrency_key, enqueued_at)"
            f" SELECT {_IDS[vendor]}, %s, 'default', 'default', 0, %s, '', '',"
            f" {_SPREAD[vendor]} FROM ({numbers}) given",
            [task, '{"args":[],"kwargs":{}}', moment],
        )
        cursor.execute(
            f"INSERT INTO robust_queue_{state}_executions (job_id, attempts, worker_id,"
            f" started_at, finished_at, {columns})"
            f" SELECT id, 1, 'w', enqueued_at, enqueued_at, {values}"
            " FROM robust_queue_jobs WHERE enqueued_at < %s AND task_path = %s",
            [moment, task],
        )


_COLUMNS = {
    "finished": ("result", "'null'"),
    "failed": (
        "kind, exception_class, message, traceback",
        "'', 'builtins.ValueError', '', ''",
    ),
}
