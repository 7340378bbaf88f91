"""What a type checker knows about the operators' verbs. Nothing runs it."""

from typing import Any, assert_type
from uuid import uuid4

import robust_queue
from robust_queue.compat import TaskResult
from robust_queue.lifecycle.retry import retry_matching
from robust_queue.lifecycle.selection import Filter, Tally

from .tasks import greet


async def operate() -> None:
    result = greet.enqueue("World")
    assert_type(robust_queue.retry(result), bool)
    assert_type(robust_queue.discard(uuid4(), using="other"), bool)
    assert_type(robust_queue.rerun("id", args=["you"]), TaskResult[..., Any])
    assert_type(await robust_queue.aretry(result), bool)
    assert_type(retry_matching("default", Filter()), Tally)
    robust_queue.retry(42)  # type: ignore[arg-type]
    Filter("failed")  # type: ignore[call-arg]
