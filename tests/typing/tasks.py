"""What a type checker knows about tasks. ``make lint`` reads it, nothing runs it.

A comment that silences an error which is not there is itself an error.
"""

from datetime import timedelta
from typing import Any, assert_type

from robust_queue import enqueue_all, exponential, task
from robust_queue.compat import TaskContext, TaskResult
from robust_queue.declaration import Call


@task
def greet(name: str, times: int = 1) -> str:
    return name * times


@task(queue_name="mail", enqueue_on_commit=False)
def count(letters: str) -> int:
    return len(letters)


@task
async def fetch(url: str) -> bytes:
    return url.encode()


@task(takes_context=True)
def attempt(context: "TaskContext[Any, Any]", add: int) -> int:
    return context.attempt + add


def only_timeouts(error: BaseException, attempt: int) -> timedelta | None:
    return timedelta(minutes=attempt) if isinstance(error, TimeoutError) else None


@task(max_attempts=5, backoff=exponential(base=20), on_crash="retry")
def pay(amount: int) -> bool:
    return amount > 0


@task(takes_context=True, max_attempts=2, backoff=only_timeouts)
def ask(context: "TaskContext[Any, Any]", question: str) -> int:
    return len(question)


def call_them() -> None:
    assert_type(greet.enqueue("World", times=2).return_value, str)
    assert_type(count.using(priority=3).enqueue("abc").return_value, int)
    assert_type(fetch.enqueue("https://example.org").return_value, bytes)
    assert_type(attempt.enqueue(1).return_value, int)
    assert_type(pay.enqueue(1).return_value, bool)
    assert_type(ask.enqueue("why?").return_value, int)
    assert_type(greet.using(run_after=timedelta(minutes=1)).bind("World"), Call)
    results = enqueue_all([greet.bind("a"), (count, ("b",)), (fetch, (), {"url": ""})])
    assert_type(results, list[TaskResult[..., Any]])


def refuse_them() -> None:
    greet.enqueue(1)  # type: ignore[arg-type]
    greet.enqueue("World", times="no")  # type: ignore[arg-type]
    greet.enqueue()  # type: ignore[call-arg]
    attempt.enqueue(context=None, add=1)  # type: ignore[call-arg]
    greet.bind(name=1)  # type: ignore[arg-type]
    task(max_retries=3)  # type: ignore[call-overload]
    task(on_crash="ignore")  # type: ignore[call-overload]
    task(backoff=20)  # type: ignore[call-overload]
    pay.using(max_attempts=3)  # type: ignore[call-arg]
    exponential("soon")  # type: ignore[arg-type]
    enqueue_all([(1, 2)])  # type: ignore[list-item]
