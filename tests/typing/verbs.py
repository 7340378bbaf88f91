"""What a type checker knows about the operators' verbs. Nothing runs it."""

from datetime import timedelta
from typing import Any, assert_type
from uuid import uuid4

import robust_queue
from robust_queue.compat import TaskResult
from robust_queue.lifecycle.retry import retry_matching
from robust_queue.lifecycle.selection import Filter, Tally
from robust_queue.lifecycle.workers import WorkerStatus
from robust_queue.models import RecurringExecution, RecurringTask

from .tasks import greet


async def operate() -> None:
    result = greet.enqueue("World")
    assert_type(robust_queue.retry(result), bool)
    assert_type(robust_queue.discard(uuid4(), using="other"), bool)
    assert_type(robust_queue.rerun("id", args=["you"]), TaskResult[..., Any])
    assert_type(await robust_queue.aretry(result), bool)
    assert_type(retry_matching("default", Filter()), Tally)
    mail = robust_queue.queue("mail")
    assert_type(mail.pause(until=timedelta(hours=1)), bool)
    assert_type(mail.latency, timedelta)
    assert_type(await mail.aclear("ready"), int)
    assert_type(robust_queue.pause_task(greet), bool)
    assert_type(robust_queue.workers(), list[WorkerStatus])
    noon = robust_queue.schedule_recurring("noon", greet, schedule="0 12 * * *")
    assert_type(noon, RecurringTask)
    assert_type(robust_queue.run_recurring_now("noon"), RecurringExecution)
    assert_type(await robust_queue.apause_recurring("noon"), bool)
    robust_queue.schedule_recurring("k", greet, schedule="@daily", overlap="perhaps")  # type: ignore[arg-type]
    robust_queue.tune("worker", threads="many")  # type: ignore[arg-type]
    robust_queue.retry(42)  # type: ignore[arg-type]
    Filter("failed")  # type: ignore[call-arg]
