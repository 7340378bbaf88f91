"""The tables of dj-queue, filled from the same list of jobs."""

import json
from datetime import timedelta

from benchmarks.dashboard import jobs

RUNS = 20

EXECUTION = "(job_id, backend_alias, queue_name, priority, created_at"
COMMON = "id, 'default', queue, 0, at"
FILLED = f"""
    ALTER TABLE stock ADD id uuid;
    UPDATE stock SET id = gen_random_uuid();

    INSERT INTO dj_queue_jobs (id, task_path, queue_name, priority, payload,
        backend_alias, concurrency_key, concurrency_limit, concurrency_duration,
        concurrency_on_conflict, finished_at, return_value, created_at, updated_at)
    SELECT id, task, queue, 0, arguments::jsonb, 'default', nullif(key, ''), 1, 86400,
        'block', CASE state WHEN 'finished' THEN ended END,
        CASE state WHEN 'finished' THEN 'null'::jsonb END, at, ended
    FROM stock ORDER BY number;

    INSERT INTO dj_queue_failed_executions
        (job_id, exception_class, message, traceback, created_at)
    SELECT id, error, 'Order ' || number || ' cannot be paid',
        repeat('  File "shop.py"' || chr(10), 20), ended
    FROM stock WHERE state = 'failed' ORDER BY number;

    INSERT INTO dj_queue_ready_executions {EXECUTION}, latency_started_at)
    SELECT {COMMON}, at FROM stock WHERE state = 'ready' ORDER BY number;

    INSERT INTO dj_queue_scheduled_executions {EXECUTION}, scheduled_at)
    SELECT {COMMON}, at + interval '8 days' FROM stock
    WHERE state = 'scheduled' ORDER BY number;

    INSERT INTO dj_queue_blocked_executions {EXECUTION}, concurrency_key, expires_at)
    SELECT {COMMON}, key, now() + interval '1 day' FROM stock
    WHERE state = 'blocked' ORDER BY number;

    INSERT INTO dj_queue_claimed_executions (job_id, process_id, created_at)
    SELECT stock.id, processes.id, at FROM stock JOIN dj_queue_processes processes
        ON processes.pid = 3 + number % {jobs.WORKERS}
    WHERE state = 'claimed' ORDER BY number;

    INSERT INTO dj_queue_semaphores
        (key, value, active_count, "limit", expires_at, created_at, updated_at)
    SELECT key, 0, 1, 1, now() + interval '1 day', now(), now()
    FROM stock WHERE key <> '' GROUP BY key ORDER BY key;
"""


def stock(count: int) -> None:
    """Fill every table that a page reads."""
    jobs.list_jobs(count)
    _processes()
    jobs.execute(FILLED)
    _recurring()


def refresh() -> None:
    """Let all processes have been heard of just now."""
    jobs.execute("UPDATE dj_queue_processes SET last_heartbeat_at = now()")


def _processes() -> None:
    from dj_queue.models import Process
    from django.utils import timezone

    now = timezone.now()
    kinds = ["supervisor", "supervisor", *["worker"] * jobs.WORKERS]
    kinds += ["dispatcher"] * (jobs.PROCESSES - len(kinds) - 1) + ["scheduler"]
    supervisors: list[Process] = []
    for pid, kind in enumerate(kinds, 1):
        process = Process.objects.create(
            kind=kind,
            name=f"{kind}-{pid}",
            pid=pid,
            hostname="host",
            supervisor=supervisors[pid % 2] if pid > 2 else None,
            metadata=json.loads('{"queues": ["*"], "threads": 3}'),
            last_heartbeat_at=now,
        )
        supervisors.append(process)


def _recurring() -> None:
    from dj_queue.models import Job, Pause, RecurringExecution, RecurringTask
    from django.utils import timezone

    now = timezone.now()
    tasks = RecurringTask.objects.bulk_create(
        RecurringTask(
            key=f"recurring-{number:03}",
            task_path="benchmarks.project.tasks.work",
            schedule="0 * * * *",
            payload={"args": [1], "kwargs": {}},
            queue_name=jobs.QUEUE,
            next_run_at=now + timedelta(hours=1),
        )
        for number in range(jobs.RECURRING)
    )
    newest = Job.objects.order_by("-pk")[: jobs.RECURRING * RUNS]
    RecurringExecution.objects.bulk_create(
        RecurringExecution(
            task_key=tasks[number % jobs.RECURRING].key,
            job=job,
            run_at=now - timedelta(hours=number // jobs.RECURRING),
        )
        for number, job in enumerate(newest)
    )
    Pause.objects.create(queue_name="queue-003")
