"""What a type checker knows about external tasks. Nothing runs it."""

from datetime import timedelta
from typing import Any, assert_type

from robust_queue import Concurrency, enqueue_all, external_task, fixed
from robust_queue.compat import TaskResult
from robust_queue.declaration import Call


def render(order: int, *, paper: str = "A4") -> str:
    return paper * order


async def fetch(url: str) -> bytes:
    return url.encode()


anything = external_task("anything", queue_name="outside")
render_pdf = external_task(
    "render-pdf",
    queue_name="pdf",
    signature=render,
    max_attempts=5,
    backoff=fixed(30),
    timeout=timedelta(minutes=10),
    concurrency=Concurrency(limit=4),
)
download = external_task("download", queue_name="pdf", signature=fetch, priority=5)


def call_them() -> None:
    assert_type(render_pdf.enqueue(7, paper="A5").return_value, str)
    assert_type(render_pdf.using(priority=3).enqueue(7).return_value, str)
    assert_type(download.enqueue("https://example.org").return_value, bytes)
    assert_type(anything.enqueue(1, to="ada").return_value, Any)
    assert_type(render_pdf.bind(7), Call)
    assert_type(render_pdf.is_external, bool)
    results = enqueue_all([render_pdf.bind(7), (download, ("",))])
    assert_type(results, list[TaskResult[..., Any]])


def refuse_them() -> None:
    render_pdf.enqueue("seven")  # type: ignore[arg-type]
    render_pdf.enqueue(7, "A5")  # type: ignore[call-arg]
    external_task("no queue")  # type: ignore[call-overload]
    external_task("isolated", queue_name="pdf", isolation="process")  # type: ignore[call-overload]
    external_task("context", queue_name="pdf", takes_context=True)  # type: ignore[call-overload]
    external_task("often", queue_name="pdf", max_attempts="many")  # type: ignore[call-overload]
