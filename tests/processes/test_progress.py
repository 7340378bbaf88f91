"""Where a worker goes on, with a clock that stands still unless told."""

from types import SimpleNamespace
from uuid import uuid4

from robust_queue.processes.progress import BETWEEN_LOOKS, Progress
from robust_queue.stores.rows import Place

CLAIMS = [SimpleNamespace(rank=3, job_id=uuid4()) for _ in range(5)]
BEHIND = Place(3, CLAIMS[-1].job_id)


def after(progress, claims=CLAIMS, *, start=None, is_full=True, took=0.0, now=1000.0):
    progress.learn(claims, start=start, is_full=is_full, begun=now - took, now=now)


def test_it_begins_with_the_first_job():
    assert Progress(is_followed=True).start(1000.0) is None


def test_who_found_as_many_as_it_asked_for_goes_on_behind_the_last():
    progress = Progress(is_followed=True)
    after(progress)
    assert progress.start(1000.01) == BEHIND
    after(progress, start=BEHIND, now=1000.02)
    assert progress.start(1000.03) == BEHIND


def test_everything_is_looked_at_a_few_times_a_second():
    progress = Progress(is_followed=True)
    after(progress)
    after(progress, start=BEHIND, now=1000.0 + BETWEEN_LOOKS / 2)
    assert progress.start(1000.0 + BETWEEN_LOOKS) is None


def test_looks_that_take_long_are_rare():
    progress = Progress(is_followed=True)
    after(progress, took=1.0)
    assert progress.start(1009.0) == BEHIND
    assert progress.start(1010.0) is None


def test_who_found_less_looks_at_everything_next():
    progress = Progress(is_followed=True)
    after(progress)
    after(progress, CLAIMS[:2], start=BEHIND, is_full=False, now=1000.01)
    assert progress.start(1000.02) is None
    after(progress, [], is_full=False, now=1000.02)
    assert progress.start(1000.03) is None


def test_where_it_does_not_matter_everything_is_looked_at():
    progress = Progress(is_followed=False)
    after(progress)
    assert progress.start(1000.01) is None
