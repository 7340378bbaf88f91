"""The bars that Robust Queue has set itself, and whether a run has cleared them."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.api.serving import GUNICORN, UVICORN
from benchmarks.dashboard import comparison
from benchmarks.plan import DJANGO_PEERS, KEYED, MILLION, OURS, UNLIMITED
from benchmarks.summary import Row, Summary
from benchmarks.systems.base import MARIADB, SQLITE

TOLERANCE = 0.1
IDEAL_NAPS = 2_000

Ratio = float | None


@dataclass(frozen=True)
class Bar:
    """One of them, and what was measured."""

    words: str
    measured: Ratio
    bar: float
    at_most: bool = False

    @property
    def verdict(self) -> str:
        """How the measured figure stands to the bar."""
        if self.measured is None:
            return "not measured"
        share = self.measured / self.bar
        if self.at_most:
            share = 1 / share if share else float("inf")
        if share >= 1:
            return "ok"
        return "within 10 %" if share >= 1 - TOLERANCE else "missed"

    @property
    def relation(self) -> str:
        """The bar in signs."""
        return f"{'≤' if self.at_most else '≥'} {self.bar:g}"


def judge(run: Summary) -> list[Bar]:
    """Return all bars."""
    return [
        *_drain_default(run),
        *_drain_best(run),
        *_limits(run),
        *_enqueue(run),
        *_bulk(run),
        *_depth(run),
        *_cost(run),
        *_latency(run),
        *_ours_alone(run),
        *_other_databases(run),
        *_memory(run),
        *_outside(run),
        *_dashboard(run),
    ]


def _drain_default(run: Summary) -> Iterator[Bar]:
    bars = {"pgqueuer": 2, "oban": 4, "procrastinate": 15}
    bars |= dict.fromkeys(("steady-queue", "dj-queue", "django-tasks-db"), 40)
    ours = run.find("drain", OURS)
    for peer, bar in bars.items():
        words = f"drain, default, in multiples of {peer}'s default"
        yield Bar(words, _ratio(ours, run.find("drain", peer)), bar)


def _drain_best(run: Summary) -> Iterator[Bar]:
    sync = run.find("drain", OURS, "best")
    asynchronous = run.find("drain", OURS, "best async")
    rival = run.find("drain", "pgqueuer", "best")
    words = "drain, best, {} tasks, in multiples of pgqueuer's best"
    yield Bar(words.format("sync"), _ratio(sync, rival), 1.1)
    yield Bar(words.format("async"), _ratio(asynchronous, rival), 1.1)
    for peer in ("dj-queue", "django-ox"):
        words = f"drain, best, in multiples of {peer}'s best"
        yield Bar(words, _ratio(sync, run.find("drain", peer, "best")), 10)
    limit = run.find("drain", "raw", "best")
    yield Bar("drain, best, as a share of raw psycopg", _ratio(sync, limit), 0.5)


def _limits(run: Summary) -> Iterator[Bar]:
    hot = run.find("hot", OURS)
    yield Bar("hot key, one at a time: jobs/s", hot.value if hot else None, 1_000)
    keyed = run.find("keys", OURS, variant=KEYED)
    unlimited = run.find("keys", OURS, variant=UNLIMITED)
    words = f"drain with {KEYED}, one at a time for each, to no limit"
    yield Bar(words, _ratio(keyed, unlimited), 0.5)


def _enqueue(run: Summary) -> Iterator[Bar]:
    ours = run.find("enqueue", OURS)
    words = "single enqueue, as a share of one raw statement"
    yield Bar(words, _ratio(ours, run.find("enqueue", "raw")), 0.6)
    for peer in (*DJANGO_PEERS, "procrastinate", "oban"):
        words = f"single enqueue, in multiples of {peer}'s"
        yield Bar(words, _ratio(ours, run.find("enqueue", peer)), 1)


def _bulk(run: Summary) -> Iterator[Bar]:
    ours = run.find("bulk", OURS)
    words = "bulk enqueue, as a share of raw psycopg"
    yield Bar(words, _ratio(ours, run.find("bulk", "raw")), 0.45)
    for peer, bar in (("dj-queue", 3), ("procrastinate", 1)):
        words = f"bulk enqueue, in multiples of {peer}'s"
        yield Bar(words, _ratio(ours, run.find("bulk", peer)), bar)


def _depth(run: Summary) -> Iterator[Bar]:
    def at(workload: str, depth: int) -> Row | None:
        return run.find(workload, OURS, "best", variant=f"{depth:,}")

    deep = _ratio(at("depth", MILLION), at("depth", 1_000))
    yield Bar("drain with 1,000,000 ready jobs behind, to 1,000", deep, 0.9)
    kept = _ratio(at("finished", MILLION), at("finished", 0))
    yield Bar("drain with 1,000,000 finished jobs kept, to none", kept, 0.9)


def _cost(run: Summary) -> Iterator[Bar]:
    for configuration in ("default", "best", "best async"):
        row = run.find("drain", OURS, configuration)
        for name, bar in (("statements", 0.1), ("commits", 0.05)):
            words = f"{name} per job of a drain, {configuration}"
            yield Bar(words, row.figures.get(name) if row else None, bar, at_most=True)


def _latency(run: Summary) -> Iterator[Bar]:
    ours = run.find("latency", OURS)
    for peer in ("oban", "procrastinate"):
        theirs = run.find("latency", peer)
        words = "latency from idle, {}, in multiples of {}'s"
        for name, label in (("value", "p50"), ("p99", "p99")):
            ratio = _ratio(ours, theirs, name)
            yield Bar(words.format(label, peer), ratio, 1, at_most=True)


def _ours_alone(run: Summary) -> Iterator[Bar]:
    naps = run.find("naps", OURS, "20 threads")
    share = naps.value / IDEAL_NAPS if naps and naps.value else None
    yield Bar("tasks of 10 ms in 20 threads, as a share of 2,000/s", share, 0.9)
    pair = run.find("share", OURS, "pair")
    words = "six tasks of 1 s for two workers: seconds between the starts"
    yield Bar(words, pair.value if pair else None, 0.3, at_most=True)
    mix = run.find("mix", OURS, "5 threads")
    words = "short tasks beside long ones: p95 of their wait in ms"
    yield Bar(words, mix.value if mix else None, 100, at_most=True)


def _other_databases(run: Summary) -> Iterator[Bar]:
    ours = run.find("drain", OURS, "best", MARIADB)
    peer = run.find("drain", "dj-queue", "best", MARIADB)
    words = "MariaDB: drain, in multiples of dj-queue's best"
    yield Bar(words, _ratio(ours, peer), 5)
    for name, bar in (("steady-queue", 10), ("django-tasks-db", 5), ("huey", 1)):
        ratio = _ratio(_faster(run, OURS), _faster(run, name))
        yield Bar(f"SQLite: drain, in multiples of {name}'s", ratio, bar)


def _faster(run: Summary, system: str) -> Row | None:
    """Return the better of a system's two configurations on SQLite."""
    rows = [run.find("drain", system, each, SQLITE) for each in ("default", "best")]
    measured = [row for row in rows if row and row.value]
    return max(measured, key=lambda row: row.value or 0) if measured else None


def _memory(run: Summary) -> Iterator[Bar]:
    ours = run.find("memory", OURS, "scheduler")
    peer = run.find("memory", "steady-queue")
    words = "memory {}, in multiples of steady-queue's"
    for name, moment in (("value", "idle"), ("after", "after jobs")):
        ratio = _ratio(ours, peer, name)
        yield Bar(words.format(moment), ratio, 1, at_most=True)
    grown = _ratio(ours, ours, "after", "value")
    jobs = ours.figures.get("jobs", 0) if ours else 0
    yield Bar(f"memory after {jobs:,.0f} jobs, to idle", grown, 1.1, at_most=True)


def _outside(run: Summary) -> Iterator[Bar]:
    for server in (GUNICORN, UVICORN):
        row = run.find("api", OURS, server)
        words = f"workers outside, 50 jobs at a time through one {server}: jobs/s"
        yield Bar(words, row.value if row else None, 1_000)


def _dashboard(run: Summary) -> Iterator[Bar]:
    pages = comparison.pages(run)
    for words, name, bar in (
        (
            "pages of the admin: the most that one takes longer with many jobs",
            "growth",
            comparison.GROWTH,
        ),
        ("pages of the admin: the slowest, in multiples of dj-queue's", "ratio", 1),
        (
            "pages of the admin: the most statements of a list",
            "listing",
            comparison.STATEMENTS,
        ),
    ):
        measured = [each for page in pages if (each := getattr(page, name)) is not None]
        yield Bar(words, max(measured, default=None), bar, at_most=True)


def _ratio(
    ours: Row | None, theirs: Row | None, name: str = "value", beside: str = ""
) -> Ratio:
    if ours is None or theirs is None:
        return None
    above, below = ours.figures.get(name), theirs.figures.get(beside or name)
    return above / below if above is not None and below else None
