"""The pages of ours: whatever the registry has, and what a list may be asked."""

from collections.abc import Iterator
from typing import Any

from benchmarks.dashboard import jobs
from benchmarks.dashboard.registry import Page, Queries, pages

STATES = ("scheduled", "ready", "blocked", "claimed", "failed", "finished")


def ours() -> Iterator[Page]:
    """Yield all of them."""
    from robust_queue.models import FailedExecution, Job

    deep = _deep(Job)
    queries: Queries = {
        "job": [*_of_jobs(str(deep), _deep(FailedExecution))],
        "failedexecution": [
            {"q": jobs.KEYED_TASK},
            {"exception": jobs.ERRORS[0]},
        ],
    }
    samples = dict.fromkeys(("name", "queue", "queue_name"), jobs.QUEUE)
    failed = FailedExecution.objects.values_list("pk", flat=True).first()
    yield from pages("robust_queue", {**samples, "job object_id": str(failed)}, queries)


def _of_jobs(deep: str, failed: Any) -> Iterator[dict[str, object]]:
    for state in STATES:
        yield {"state": state}
    yield {"queue": jobs.QUEUE}
    yield {"state": "failed", "queue": jobs.QUEUE}
    yield {"task": jobs.KEYED_TASK}
    yield {"error": jobs.ERRORS[0]}
    yield {"worker": "worker-00000003:7@host"}
    yield {"recurring": "recurring-007"}
    yield {"key": f"{jobs.KEYED_TASK}/1"}
    yield {"priority": 5}
    yield {"q": deep}
    yield {"q": "customer-77@"}
    yield {"q": "nowhere at all"}
    yield {"older": deep}
    yield {"state": "failed", "older": failed}
    yield {"state": "finished", "older": deep}


def _deep(model: Any) -> Any:
    """Return the id of a row behind nine tenths of the others."""
    rows = model.objects.order_by("pk").values_list("pk", flat=True)
    return rows[rows.count() // 10]
