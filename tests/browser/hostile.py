"""Rows that somebody has named to do harm, or that are larger than anybody expects."""

import json
from datetime import timedelta

from django.utils import timezone

from robust_queue.models.recurring import Outcome
from tests.support import rows

SCRIPT = "<script>window.__pwned=1;alert(1)</script>"
IMAGE = '"><img src=x onerror="window.__pwned=1;alert(2)">'
TEMPLATE = "{{ 7|add:7 }}{% load x %}${7*7}"
# What follows is read from right to left, and looks like something else.
TURNED = "invoice\u202egnp.exe\u2066\u200f"
UNBROKEN = "w" * 120
NAMES = (SCRIPT, IMAGE, TEMPLATE, TURNED, UNBROKEN)
# The longest name that a queue may have.
LONGEST = 128
TEN_MEGABYTES = 10 * 2**20


def everything():
    """One of each, in all tables that hold a name or a text."""
    for name in NAMES:
        _jobs(name)
        _limits(name)
        _recurring(name)
        _people(name)
    rows.ready(rows.job(arguments=_huge()))


def _jobs(name):
    queue = name[:LONGEST]
    given = {"queue_name": queue, "task_path": f"shop.{name}", "partition_key": queue}
    arguments = _call(name, {name: [name, "\ud800"]})

    def hostile():
        return rows.job(**given, arguments=arguments)

    rows.ready(hostile(), partition_key=queue)
    rows.scheduled(hostile())
    rows.blocked(hostile(), concurrency_key=name)
    rows.finished(hostile())
    told = {"exception_class": f"shop.{name}", "message": name, "traceback": name * 20}
    rows.failed(hostile(), **told)
    rows.attempt(rows.failed(hostile(), **told).job, **told)
    rows.isolated_run(rows.finished(hostile()).job, output=name * 20)
    rows.pause(queue_name=queue)
    rows.task_pause(task_path=f"shop.{name}")


def _limits(name):
    rows.semaphore(key=name, value=0)
    rows.rate_bucket(key=name)
    rows.unique_lock(key=name[:64])
    rows.named_request(key=name[:64])


def _recurring(name):
    rows.recurring_task(
        key=name,
        task_path=f"shop.{name}",
        description=name,
        queue_name=name[:LONGEST],
        arguments=_call(name, {}),
        static=False,
    )
    told = {"outcome": Outcome.REFUSED, "reason": name, "exception_class": name}
    rows.recurring_execution(task_key=name, **told)


def _people(name):
    worker = rows.process(
        name=name[:LONGEST],
        hostname=name,
        metadata=json.dumps({"queues": [name], "threads": 3}),
        created_at=timezone.now() - timedelta(days=400),
    )
    told = json.dumps({"queues": [name], "version": name})
    rows.process("External", name=f"{name[:90]}-1", hostname=name, metadata=told)
    rows.claimed(rows.job(queue_name=name[:LONGEST]), by=worker)
    rows.tuning(process_id=worker.pk, queues=name)
    rows.api_token(name=name[:LONGEST], scopes=name, created_by=name)


def _call(*args):
    # As JSON, which escapes what no database would take: half a pair of surrogates.
    return json.dumps({"args": list(args[:1]), "kwargs": args[1]})


def _huge():
    return json.dumps({"args": ["x" * TEN_MEGABYTES], "kwargs": {}})
