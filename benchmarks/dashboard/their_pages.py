"""The pages of dj-queue's dashboard."""

from collections.abc import Iterator

from benchmarks.dashboard import jobs
from benchmarks.dashboard.registry import Page, pages

STATES = ("ready", "scheduled", "claimed", "blocked", "failed", "finished")
PAGE = 100


def theirs() -> Iterator[Page]:
    """Yield all of them."""
    from dj_queue.models import FailedExecution, Job

    failed = FailedExecution.objects.select_related("job").order_by("pk")[0]
    deep = Job.objects.count() * 9 // 10 // PAGE
    queries = {
        "job": [
            *({"status": state} for state in STATES),
            {"queue_name": jobs.QUEUE},
            {"queue_name": jobs.QUEUE, "status": "failed"},
            {"concurrency_key": f"{jobs.KEYED_TASK}/1"},
            {"recurring_task_key": "recurring-007"},
            {"q": failed.job_id},
            {"q": jobs.KEYED_TASK},
            {"p": deep},
        ],
        "failedexecution": [
            {"q": jobs.KEYED_TASK},
            {"exception_class": jobs.ERRORS[0]},
        ],
        "dashboard_queue": [{"state": state} for state in STATES],
    }
    samples = {"queue_name": jobs.QUEUE, "job object_id": str(failed.job_id)}
    yield from pages("dj_queue", samples, queries)
