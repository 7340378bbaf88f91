"""Asking for pages, as somebody who may see everything.

What counts is the time that this process and its backend in PostgreSQL spend on a CPU.
On an idle machine a clock says the same, and nowhere else does it say anything.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.dashboard.registry import Page

VISITS = 9
ENOUGH = 0.3
# Nothing that is so slow is so for want of a cache.
SLOW = 3.0
Clock = Callable[[], float]

# Pages that take only what a form sends, or that lead to others.
NOT_TO_BE_LOOKED_AT = {302, 400, 405}


def visit(pages: Iterable[Page]) -> dict[str, dict[str, float]]:
    """Return of each page how many statements it took, and how many milliseconds.

    The first visit of each is for the caches, and counts the statements; of the others
    the fastest counts, which was disturbed the least.
    """
    client, used = _client(), _clock()
    found = {}
    for page in pages:
        began = used()
        status, statements = _counted(client, page)
        seconds = used() - began
        if status == 200:
            seconds = seconds if seconds > SLOW else _fastest(client, page, used)
            found[page.name] = {"ms": 1000 * seconds, "statements": statements}
        elif status not in NOT_TO_BE_LOOKED_AT:
            found[page.name] = {"status": status}
    return found


def _client() -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    user, _ = User.objects.get_or_create(
        username="operator", is_staff=True, is_superuser=True
    )
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def _clock() -> Clock:
    """Return what tells how many seconds have been used so far, here and there."""
    from django.db import connection

    with connection.cursor() as cursor:
        # What others do for a backend would not be counted.
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    backend = Path(f"/proc/{pid}/schedstat")
    return lambda: time.process_time() + int(backend.read_text().split()[0]) / 1e9


def _counted(client: Any, page: Page) -> tuple[int, int]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        response = client.get(page.address)
    return response.status_code, len(captured)


def _fastest(client: Any, page: Page, used: Clock) -> float:
    times: list[float] = []
    while len(times) < VISITS and sum(times) < ENOUGH:
        began = used()
        client.get(page.address)
        times.append(used() - began)
    return min(times)
