"""A shop in the middle of its day: something of everything that pages can show.

The same rows are what the screenshots of the documentation show.
"""

import json
from datetime import timedelta
from uuid import UUID, uuid4

from django.utils import timezone

from robust_queue.identifiers import new_job_id
from robust_queue.models import Job, Operation
from robust_queue.models.recurring import Outcome
from robust_queue.policies import Kind
from tests.browser import rollups
from tests.support import rows

SHOP = "example_project.shop.tasks"
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

# What waits, by queue: the task, and how many of it.
WAITING = {
    "default": ("charge_card", 6),
    "mail": ("send_receipt", 14),
    "parcels": ("pack_parcel", 9),
    "photos": ("resize_photo", 3),
    "reports": ("nightly_report", 1),
}
FAILURES = [
    ("charge_card", "shop.errors.CardRefused", "Card 4242 was refused.", 7),
    ("send_receipt", "smtplib.SMTPServerDisconnected", "Connection closed.", 4),
    ("wait_for_supplier", "builtins.TimeoutError", "No answer within 0.3 s.", 2),
]
TRACEBACK = """Traceback (most recent call last):
  File "shop/tasks.py", line 71, in {task}
    return gateway.call(order)
           ^^^^^^^^^^^^^^^^^^^
{exception}: {message}
"""


def everything():
    """Rows of every table, as a shop with some trouble has them."""
    workers = _processes()
    _waiting()
    _running(workers)
    _ended()
    _failures()
    _limits(workers)
    _recurring()
    _operations()
    _tokens()
    _orders(workers)
    rollups.of_a_week(WAITING)


def path(task):
    return f"{SHOP}.{task}"


def job(task="charge_card", *, ago=MINUTE, queue="default", **values):
    """A call of a task, made that long ago."""
    arguments = {"args": [], "kwargs": {"order": 1042, "customer": "Ada Lovelace"}}
    given = {"queue_name": queue, "enqueued_at": timezone.now() - ago}
    encoded = json.dumps(arguments)
    return rows.job(
        **{"task_path": path(task), "arguments": encoded, **given, **values}
    )


def _processes():
    """Two hosts, a worker of which nothing was heard for an hour, and one alone."""
    here = _household("web-1", pid=4100)
    there = _household("web-2", pid=512)
    _process("Worker", "web-3", 77, silent_for=HOUR)
    _outside()
    return [*here, *there]


def _household(host, *, pid):
    supervisor = _process("Supervisor", host, pid)
    others = {"supervisor_id": supervisor.pk}
    _process("Dispatcher", host, pid + 1, **others)
    _process("Scheduler", host, pid + 2, **others)
    queues = (["default", "mail"], ["parcels", "photos*"])
    return [
        _process("Worker", host, pid + 3 + n, queues=names, **others)
        for n, names in enumerate(queues)
    ]


def _process(kind, host, pid, *, queues=(), silent_for=SECOND, **values):
    identity = uuid4()
    told = {"queues": list(queues) or ["*"], "threads": 3}
    return rows.process(
        kind,
        silent_for=silent_for,
        id=identity,
        name=f"{kind.lower()}-{identity.hex[-8:]}:{pid}@{host}",
        pid=pid,
        hostname=host,
        metadata=json.dumps(told) if kind == "Worker" else "",
        memory=(60 + pid % 40) * 2**20,
        **values,
    )


def _outside():
    told = {"queues": ["labels", "photos*"], "version": "2.1.0"}
    rows.process(
        "External",
        name="label printer-7c1f09aa",
        pid=31,
        hostname="warehouse",
        metadata=json.dumps(told),
    )


def _waiting():
    for queue, (task, number) in WAITING.items():
        for n in range(number):
            rows.ready(job(task, queue=queue, ago=n * 20 * SECOND))
    for n in range(5):
        later = timezone.now() + (n + 1) * HOUR
        rows.scheduled(job("redeem_coupon", run_after=later), scheduled_at=later)
    rows.pause(queue_name="reports", until=timezone.now() + HOUR)
    rows.task_pause(task_path=path("rebuild_index"))


def _running(workers):
    for n, worker in enumerate(workers):
        running = job("pack_parcel", queue="parcels", ago=(n + 1) * MINUTE)
        rows.claimed(running, by=worker)
    rows.cancellation(job_id=running.pk)


def _ended():
    now = timezone.now()
    for n in range(40):
        ended = now - n * 90 * SECOND
        moments = {"started_at": ended - SECOND, "finished_at": ended}
        of = job("send_receipt", queue="mail", ago=n * 90 * SECOND + 3 * SECOND)
        rows.finished(of, **moments)
    tried = job("pack_parcel", queue="parcels", ago=HOUR)
    rows.finished(tried)
    rows.attempt(tried, exception_class="builtins.OSError", message="No paper left.")
    rows.isolated_run(rows.finished(job("render_catalogue")).job)


def _failures():
    for task, exception, message, number in FAILURES:
        told = {"exception_class": exception, "message": message}
        shown = TRACEBACK.format(task=task, exception=exception, message=message)
        is_late = exception.endswith("TimeoutError")
        kind = Kind.TIMED_OUT.value if is_late else Kind.ERROR.value
        for n in range(number):
            of = job(task, ago=(n + 1) * 7 * MINUTE)
            rows.failed(of, **told, traceback=shown, kind=kind, attempts=3)


def _limits(workers):
    for n, article in enumerate(("lamp", "chair", "table")):
        key = f"count_stock/{article}"
        held = job("count_stock", concurrency_key=key)
        rows.claimed(held, by=workers[n])
        rows.semaphore(key=key, value=0, limit=1, holder_id=held.pk)
        for _ in range(n):
            waiting = job("count_stock", concurrency_key=key)
            rows.blocked(waiting, concurrency_key=key)
    rows.rate_bucket(key="call_courier", level=4.0)
    greeting = rows.ready(job("greet_customer", unique_key="ab12" * 16)).job
    rows.unique_lock(key=greeting.unique_key, job_id=greeting.pk)


def _recurring():
    now = timezone.now()
    declared = {"declared_at": now, "timezone": "Europe/Madrid"}
    tasks = [
        ("tidy up", "forget_old_carts", "0 3 * * *", declared),
        ("nightly report", "nightly_report", "30 2 * * *", declared),
        ("strike the bell", "strike_bell", "every hour", {"static": False}),
        ("ask the supplier", "ask_supplier", "*/5 * * * *", {"enabled": False}),
        ("old index", "rebuild_index", "@daily", {"retired_at": now}),
    ]
    for n, (key, task, schedule, more) in enumerate(tasks):
        given = {"key": key, "task_path": path(task), "schedule": schedule}
        rows.recurring_task(**given, next_run_at=now + (n + 1) * HOUR, **more)
        _history(key, now)


def _history(key, now):
    outcomes = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.SKIPPED, Outcome.ENQUEUED)
    for n, outcome in enumerate(outcomes):
        at = now - (n + 1) * HOUR
        over = {"started_at": at, "finished_at": at + n * SECOND}
        why = "The run before was not over." if outcome == Outcome.SKIPPED else ""
        rows.recurring_execution(
            task_key=key, run_at=at, outcome=outcome, reason=why, **over
        )


def _operations():
    now = timezone.now()
    _operation("retry", requested_at=now - HOUR, started_at=now - HOUR, done=40)
    over = {"finished_at": now - HOUR, "matched": 1200, "done": 1190}
    _operation("discard", requested_at=now - 2 * HOUR, expected=1200, **over)
    _operation("cancel", requested_at=now, expected=10)
    trouble = {"problem": "The database went away.", "stopped_at": now}
    _operation("run_now", requested_at=now - 3 * HOUR, expected=300, **trouble)


def _tokens():
    now = timezone.now()
    scopes = "enqueue:shop.tasks.send_receipt read work:mail* work:photos"
    rows.api_token(name="photo service", scopes=scopes, last_used_at=now - MINUTE)
    rows.named_request(job_id=Job.objects.first().pk, expires_at=now + DAY)
    ends = {"expires_at": now + 90 * 24 * HOUR, "requests_per_minute": 600}
    rows.api_token(name="dashboard on the wall", created_at=now - HOUR, **ends)
    rows.api_token(name="left the company", revoked_at=now - MINUTE, scopes="operate")


def _operation(verb, **values):
    criteria = json.dumps({"state": "failed", "queue": "mail"})
    Operation.objects.create(
        **{
            "verb": verb,
            "criteria": criteria,
            "requested_by": "ada",
            "newest": UUID(int=new_job_id().int),
            "expected": 500,
            **values,
        }
    )


def _orders(workers):
    rows.tuning(process_id=workers[0].pk, threads=5, queues="mail")
    rows.tuning(process_id=workers[1].pk, threads=None, is_quiet=True)
