"""Our tables, filled from the list of jobs."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

from benchmarks.dashboard import jobs

RUNS = 20
ATTEMPTS = 500
OPERATIONS = 100
MINUTE, QUARTER, HOUR = 60, 900, 3_600
# How far back rows of each span go.
REACH = {MINUTE: 2 * HOUR, QUARTER: 24 * HOUR, HOUR: 7 * 24 * HOUR}

# UUIDs of version 7, as they are made.
NAMED = """
    ALTER TABLE stock ADD id uuid;
    UPDATE stock SET id = (
        lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
        || '7' || lpad(to_hex(number % 4096), 3, '0')
        || '8' || substr(md5(number::text), 1, 15)
    )::uuid;
"""
EXECUTION = "(job_id, queue_name, priority, attempts, created_at"
COMMON = "id, queue, 0, 0, at"
FILLED = f"""
    INSERT INTO robust_queue_jobs (id, task_path, backend, queue_name, priority,
        arguments, metadata, concurrency_key, unique_key, partition_key, enqueued_at)
    SELECT id, task, 'default', queue, 0, arguments, '', key, '', '', at
    FROM stock ORDER BY number;

    INSERT INTO robust_queue_finished_executions
        (job_id, attempts, worker_id, started_at, finished_at, result)
    SELECT id, 1, worker, began, ended, 'null' FROM stock
    WHERE state = 'finished' ORDER BY number;

    INSERT INTO robust_queue_failed_executions
        (job_id, attempts, worker_id, started_at, finished_at, kind, exception_class,
        message, traceback)
    SELECT id, 3, worker, began, ended, 'error', error,
        'Order ' || number || ' cannot be paid',
        repeat('  File "shop.py"' || chr(10), 20)
    FROM stock WHERE state = 'failed' ORDER BY number;

    INSERT INTO robust_queue_ready_executions {EXECUTION}, partition_key)
    SELECT {COMMON}, '' FROM stock WHERE state = 'ready' ORDER BY number;

    INSERT INTO robust_queue_scheduled_executions {EXECUTION}, scheduled_at)
    SELECT {COMMON}, at + interval '8 days' FROM stock
    WHERE state = 'scheduled' ORDER BY number;

    INSERT INTO robust_queue_blocked_executions
        {EXECUTION}, concurrency_key, other_keys)
    SELECT {COMMON}, key, '' FROM stock WHERE state = 'blocked' ORDER BY number;

    INSERT INTO robust_queue_claimed_executions {EXECUTION}, process_id, token)
    SELECT {COMMON}, ('00000000-0000-7000-8000-' || lpad((3 + number % {jobs.WORKERS}
        )::text, 12, '0'))::uuid, gen_random_uuid()
    FROM stock WHERE state = 'claimed' ORDER BY number;

    INSERT INTO robust_queue_semaphores (key, value, slots, expires_at, holder_id)
    SELECT key, 0, 1, now() + interval '1 day', (array_agg(id))[1]
    FROM stock WHERE key <> '' GROUP BY key ORDER BY key;
"""
ROLLUPS = """
    INSERT INTO robust_queue_rollups (queue_name, span, at, process_id, finished,
        failed, waits, runs, depth, latency)
    SELECT CASE queue WHEN 0 THEN '' ELSE 'queue-' || lpad((queue - 1)::text, 3, '0')
        END, %(span)s, to_timestamp(moment), ('00000000-0000-7000-8000-' ||
        lpad(process::text, 12, '0'))::uuid, 40, 2, %(waits)s, %(runs)s,
        CASE process WHEN 1 THEN 12 END, CASE process WHEN 1 THEN 800 END
    FROM generate_series(0, %(queues)s) queue,
        generate_series(1, %(processes)s) process,
        (SELECT floor(extract(epoch FROM now()) / %(span)s)::bigint * %(span)s AS top)
            clock,
        generate_series(top - %(reach)s, top, %(span)s) moment
"""


def stock(count: int) -> None:
    """Fill every table that a page reads."""
    jobs.list_jobs(count)
    jobs.execute(NAMED)
    jobs.execute(FILLED)
    _processes()
    _recurring()
    _operations()
    _rest()
    _rollups(processes=4 if count > 1_000 else 1)


def refresh() -> None:
    """Let all processes have been heard of just now."""
    jobs.execute("UPDATE robust_queue_processes SET last_heartbeat_at = now()")


def identity(number: int) -> UUID:
    """Return the id of a process."""
    return UUID(f"00000000-0000-7000-8000-{number:012}")


def _processes() -> None:
    from django.utils import timezone

    from robust_queue.models import Process

    now = timezone.now()
    kinds = ["Supervisor", "Supervisor", *["Worker"] * jobs.WORKERS]
    kinds += ["Dispatcher"] * (jobs.PROCESSES - len(kinds) - 1) + ["Scheduler"]
    Process.objects.bulk_create(
        Process(
            id=identity(number),
            kind=kind,
            name=f"{kind.lower()}-{number:08}:{number}@host",
            pid=number,
            hostname="host",
            supervisor_id=identity(1 + number % 2) if number > 2 else None,
            metadata=json.dumps({"queues": ["*"], "threads": 3}),
            created_at=now,
            last_heartbeat_at=now,
            memory=60_000_000,
        )
        for number, kind in enumerate(kinds, 1)
    )


def _recurring() -> None:
    from django.utils import timezone

    from robust_queue.models import RecurringExecution, RecurringTask

    now = timezone.now()
    tasks = [
        RecurringTask(
            key=f"recurring-{number:03}",
            task_path="benchmarks.project.robust_queue_tasks.work",
            schedule="0 * * * *",
            arguments='{"args":[1],"kwargs":{}}',
            queue_name=jobs.QUEUE,
            next_run_at=now + timedelta(hours=1),
            declared_at=now,
        )
        for number in range(jobs.RECURRING)
    ]
    RecurringTask.objects.bulk_create(tasks)
    newest = _newest(jobs.RECURRING * RUNS)
    RecurringExecution.objects.bulk_create(
        RecurringExecution(
            task_key=tasks[number % jobs.RECURRING].key,
            job_id=job_id,
            run_at=now - timedelta(hours=number // jobs.RECURRING),
            outcome="succeeded",
            started_at=now,
            finished_at=now,
        )
        for number, job_id in enumerate(newest)
    )


def _operations() -> None:
    from django.utils import timezone

    from robust_queue.models import Operation

    now = timezone.now()
    (newest,) = _newest(1)
    Operation.objects.bulk_create(
        Operation(
            verb="retry",
            criteria=json.dumps({"queue": jobs.QUEUE}),
            requested_by="admin",
            requested_at=now - timedelta(hours=number),
            started_at=now - timedelta(hours=number),
            finished_at=now - timedelta(hours=number - 1),
            newest=newest,
            expected=5_000,
            matched=5_000,
            done=4_990,
        )
        for number in range(1, OPERATIONS + 1)
    )


def _rest() -> None:
    """A few rows of each of the other tables, a page of them where there may be."""
    from django.utils import timezone

    from robust_queue import models

    now = timezone.now()
    newest = _newest(ATTEMPTS)
    ended: dict[str, Any] = {"started_at": now, "finished_at": now}
    models.Attempt.objects.bulk_create(
        models.Attempt(job_id=job_id, attempts=1, exception_class="OSError", **ended)
        for job_id in newest
    )
    models.IsolatedRun.objects.bulk_create(
        models.IsolatedRun(
            job_id=job_id, attempts=1, node="host", pid=7, reserved_at=now, **ended
        )
        for job_id in newest
    )
    models.UniqueLock.objects.bulk_create(
        models.UniqueLock(key=f"{job_id.hex * 2}", job_id=job_id) for job_id in newest
    )
    models.RateBucket.objects.bulk_create(
        models.RateBucket(key=f"rate-{number}", level=3.0, counted_at=now)
        for number in range(ATTEMPTS)
    )
    models.Pause.objects.create(queue_name="queue-003")
    models.TaskPause.objects.create(task_path=jobs.KEYED_TASK)
    models.Tuning.objects.create(process_id=identity(3), threads=5)


def _newest(number: int) -> list[UUID]:
    from robust_queue.models import Job

    return [*Job.objects.order_by("-pk").values_list("pk", flat=True)[:number]]


def _rollups(processes: int) -> None:
    waits, runs = _histograms()
    given = {
        "queues": jobs.QUEUES,
        "processes": processes,
        "waits": waits,
        "runs": runs,
    }
    for span, reach in REACH.items():
        jobs.execute(ROLLUPS, {**given, "span": span, "reach": reach})


def _histograms() -> tuple[str, str]:
    from robust_queue.lifecycle.durations import Durations, step_of

    waits = (timedelta(milliseconds=each**3) for each in range(1, 20))
    runs = (timedelta(milliseconds=each * 7) for each in range(1, 40))
    return Durations(map(step_of, waits)).text, Durations(map(step_of, runs)).text
