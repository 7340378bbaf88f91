"""The jobs of a dashboard: one list of them, from which each system fills its tables.

They were enqueued within a week, a third of a second or ten minutes apart, and those of
each state are spread over it. A small list has as many of each as a page shows, so that
the same page of a large one has no more rows.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

QUEUES = 200
PROCESSES = 20
WORKERS = 14
RECURRING = 50
LEAST = 100
TASKS = ("work", "work_async", "work_hot", "work_keyed", "nap")
KEYED_TASK = "benchmarks.project.robust_queue_tasks.work_keyed"
ERRORS = ("ValueError", "OSError", "TimeoutError", "shop.errors.CardRefused")
QUEUE = "queue-007"

# Of a thousand jobs. The rest has finished.
SHARES = {"failed": 100, "ready": 50, "scheduled": 20, "blocked": 5, "claimed": 1}
# Spreads consecutive numbers: it divides no number of jobs that is measured.
STRIDE = 7_919

TABLE = """
    CREATE TEMPORARY TABLE stock AS
    SELECT number, place, state, at, at + interval '2 seconds' AS began,
        at + interval '2 seconds' + (number %% 900) * interval '1 millisecond' AS ended,
        'queue-' || lpad((number %% {queues})::text, 3, '0') AS queue,
        (ARRAY[{tasks}])[1 + number %% {kinds}] AS task,
        '{{"args":[' || number || '],"kwargs":{{"to":"customer-' || number
            || '@example.org","order":"' || substr(md5(number::text), 1, 12)
            || '","amount":' || number %% 10000 || '}}}}' AS arguments,
        CASE WHEN state IN ('blocked', 'claimed') THEN
            '{keyed}/' || place %% {keys} ELSE '' END AS key,
        (ARRAY[{errors}])[1 + number %% {wrongs}] AS error,
        'worker-' || lpad((number %% {workers})::text, 8, '0') || ':7@host' AS worker
    FROM (
        SELECT number, place, CASE {states} ELSE 'finished' END AS state,
            now() - interval '7 days' * (1 - number::float / %(count)s) AS at
        FROM generate_series(1, %(count)s) number,
            LATERAL (SELECT number::bigint * {stride} %% %(count)s AS place) permuted
    ) jobs
"""


def numbers(count: int) -> dict[str, int]:
    """Return how many of so many jobs are in each state, but for the finished."""
    return {
        state: max(LEAST, count * share // 1_000) for state, share in SHARES.items()
    }


def keys(count: int) -> int:
    """Return how many concurrency keys so many jobs have."""
    return max(LEAST, count // 100)


def list_jobs(count: int) -> None:
    """Create the table `stock` for as long as the connection lasts."""
    statement = TABLE.format(
        queues=QUEUES,
        tasks=_quoted(f"benchmarks.project.robust_queue_tasks.{t}" for t in TASKS),
        kinds=len(TASKS),
        keyed=KEYED_TASK,
        keys=keys(count),
        errors=_quoted(iter(ERRORS)),
        wrongs=len(ERRORS),
        workers=WORKERS,
        states=_states(count),
        stride=STRIDE,
    )
    execute(statement, {"count": count})


def execute(statement: str, parameters: dict[str, Any] | None = None) -> None:
    """Run one statement."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def _quoted(words: Iterator[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _states(count: int) -> str:
    found = numbers(count)
    ends = accumulate(found.values())
    pairs = zip(found, ends, strict=True)
    return " ".join(f"WHEN place < {end} THEN '{state}'" for state, end in pairs)
