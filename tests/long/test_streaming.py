"""1,000,000 jobs over the API: streamed in a little memory, counted by an index.

The figures are printed: `make test-long ARGS=-s`.

    RQ_STREAM_JOBS=1000000   how many jobs there are
"""

import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from django.db import connection

from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.search_counts import numbers
from robust_queue.lifecycle.search_pages import page
from robust_queue.lifecycle.tokens import create_token
from tests.settings import KIND
from tests.support.api_servers import SERVERS, ApiServer, Connection, closed
from tests.support.backlog import analyze, fill
from tests.support.ended import DAY, fill_with_ended
from tests.support.statements import statements

JOBS = int(os.environ.get("RQ_STREAM_JOBS") or 1_000_000)
MEGABYTE = 1024 * 1024
MOST_GROWTH = 30  # MiB
PAGE = os.sysconf("SC_PAGE_SIZE")
SEARCHES = {
    "pending": JobSearch(state="pending"),
    "ready in a queue": JobSearch(state="ready", queue="queue_1"),
    "finished": JobSearch(state="finished"),
    "finished of a task": JobSearch(state="finished", task="tests.testapp.nothing"),
    "of a queue": JobSearch(queue="queue_1"),
}

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(3600),
]


@pytest.fixture
def million():
    half = JOBS // 2
    fill(JOBS - half)
    # Those that were filled in before are younger, and not meant.
    fill_with_ended("finished", half, ago=2 * DAY)
    analyze()
    if connection.vendor == "postgresql":
        # As autovacuum leaves it, sooner or later.
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def test_a_stream_takes_a_little_memory(million, tmp_path):
    _, token = create_token("default", name="long", scopes=["read"])
    for kind in SERVERS:
        with served(tmp_path, kind) as server:
            judge(kind, streamed(server, token))


@contextmanager
def served(folder, kind):
    server = ApiServer(folder, kind)
    try:
        server.start()
        server.until(server.answers, "it serves pages")
        yield server
    finally:
        server.clean_up()
        shutil.rmtree(server.door.parent, ignore_errors=True)


def judge(kind, figures):
    print(f"\n{KIND}, {kind}: {figures}")  # noqa: T201
    assert figures.lines == JOBS
    assert figures.growth < MOST_GROWTH


class Figures(NamedTuple):
    """What a stream took."""

    lines: int
    seconds: float
    memory: float
    growth: float

    def __str__(self):
        pace = self.lines / self.seconds
        return (
            f"{self.lines:,} jobs in {self.seconds:.0f} s ({pace:,.0f}/s); server"
            f" {self.memory:.1f} MiB, {self.growth:.1f} MiB more at most"
        )


def streamed(server, token):
    with closed(Connection(server.door, token)) as line:
        # Whatever it loads for its first answers is not the stream's.
        for path in ("/jobs?limit=500", "/jobs/stream?text=nothing"):
            asked(line, path).read()
        before, most, lines, begun = memory(server), 0, 0, time.monotonic()
        answer = asked(line, "/jobs/stream")
        while block := answer.read1(MEGABYTE):
            lines += block.count(b"\n")
            most = max(most, memory(server))
        took = time.monotonic() - begun
    return Figures(lines, took, before / MEGABYTE, (most - before) / MEGABYTE)


def asked(line, path):
    headers = {"Authorization": f"Bearer {line.bearer}"}
    line.request("GET", f"/queue/v1{path}", headers=headers)
    answer = line.getresponse()
    assert answer.status == 200, answer.read()
    return answer


def memory(server):
    """Of all its processes, in bytes."""
    pid = server.process.pid
    return sum(map(rss, [pid, *children(pid)]))


def test_counts_find_their_way_by_an_index(million):
    sent = {name: counted(name, search) for name, search in SEARCHES.items()}
    # Of a state alone a whole table is counted, in whichever way that is quickest. And
    # the last stretch has an open end.
    narrow = [name for name, it in SEARCHES.items() if it.given.keys() - {"state"}]
    wide = [it for name in narrow for it in sent[name][:4] if not reads_by_index(it)]
    assert not wide


def counted(name, search):
    """What it took to count them, statement by statement."""
    with statements() as sent:
        begun = time.monotonic()
        found = numbers("default", search, patience=600)
        took = time.monotonic() - begun
    begun = time.monotonic()
    page("default", search, limit=100)
    turned = 1000 * (time.monotonic() - begun)
    print(  # noqa: T201
        f"\n{KIND}, {name}: {found.total:,} counted in {took:.2f} s by {len(sent)}"
        f" statements, a page in {turned:.0f} ms"
    )
    return sent


def reads_by_index(statement):
    """Does the plan of a statement read no table from its beginning to its end?

    Nor an index: it is given a range of that, or told after how many rows to stop.
    """
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {statement}")
        steps = [" ".join(map(str, row)) for row in cursor.fetchall()]
    whole = {"postgresql": "Seq Scan", "mysql": " ALL ", "sqlite": "SCAN"}
    read = [each for each in steps if whole[connection.vendor] in each]
    # SQLite says so of a walk along an index, too.
    if not all("INDEX" in each or "subquery" in each for each in read):
        return False
    ranges = {
        "postgresql": ["Index Cond"],
        "mysql": [" range ", " ref ", " const "],
        "sqlite": ["SEARCH"],
    }[connection.vendor]
    has_range = any(word in step for step in steps for word in ranges)
    return has_range or " LIMIT " in statement


def rss(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def children(pid):
    return map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
