"""Finished or failed ──▶ gone, when it has been kept for long enough."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from robust_queue.stores import store_for
from robust_queue.stores.clearing import State
from robust_queue.stores.rows import EndedJob, Milestone

from .history import complete_before_clearing
from .keep import rules
from .moments import as_stored
from .selection import OnProgress, Tally, Wanted, in_batches, standing

DAY = timedelta(days=1)
BATCH_SIZE = 500
LARGEST_BATCH = 5_000  # below what any database takes in one statement

Judge = Callable[[EndedJob], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which of the jobs that have ended may be cleared. None: any."""

    # A task, or its path.
    task: Any = None
    queue: str | None = None
    kind: str | None = None
    # None: each when its own time is up. Else what tasks and settings say of the time
    # does not count.
    finished_before: datetime | None = None

    def includes(self, job: EndedJob) -> bool:
        path = getattr(self.task, "module_path", self.task)
        asked = (path, self.queue, self.kind)
        found = (job.task_path, job.queue_name, job.kind)
        return all(
            wanted is None or wanted == value
            for wanted, value in zip(asked, found, strict=True)
        )


ANY = Choice()


def clear(
    database: str,
    state: State,
    choice: Choice = ANY,
    *,
    batch_size: int = BATCH_SIZE,
    sleep_between_batches: float = 0,
) -> int:
    """Delete jobs that ended in that way and are old enough; return how many.

    In batches, each a transaction of its own, so that no lock is held for long, and
    with pauses for whoever asks for them.
    """
    cleared = 0
    for batch in batches(database, state, choice, size=batch_size):
        cleared += len(batch.cleared)
        if sleep_between_batches and batch.cleared:
            time.sleep(sleep_between_batches)
    return cleared


def clear_matching(
    database: str, wanted: Wanted, *, on_progress: OnProgress | None = None
) -> Tally:
    """Delete every finished job that matches, however young it is.

    Passed over is what somebody else has locked, or cleared meanwhile.
    """
    if wanted.state != "finished":
        raise ValueError(f"Only finished jobs are cleared, not {wanted.state} ones.")
    return in_batches(database, wanted, partial(_clear_batch, database), on_progress)


def _clear_batch(database: str, ids: Sequence[UUID]) -> Tally:
    complete_before_clearing(database, ids)
    # What has ended by now: hosts whose clocks are ahead write later moments.
    before = as_stored(timezone.now() + DAY)
    cleared = store_for(database).clear("finished", ids, before=before)
    left = Counter(standing(database, [it for it in ids if it not in cleared]).values())
    gone = Counter(gone=len(ids) - len(cleared) - left.total())
    return Tally(len(ids), len(cleared), dict(left + gone))


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A step of a walk: what was looked at, what of it was due, and what is gone."""

    walked: Sequence[EndedJob]
    due: Sequence[EndedJob]
    cleared: set[UUID]

    @property
    def missed(self) -> list[EndedJob]:
        """What somebody else had locked, or changed, or cleared already."""
        return [each for each in self.due if each.job_id not in self.cleared]


def batches(
    database: str,
    state: State,
    choice: Choice = ANY,
    *,
    size: int = BATCH_SIZE,
    is_rehearsal: bool = False,
) -> Iterator[Batch]:
    """Clear step by step, as far as the caller goes on; a rehearsal deletes nothing."""
    for before, is_due in _rounds(database, state, choice):
        yield from walk(
            database, state, is_due, before=before, size=size, is_real=not is_rehearsal
        )


def walk(
    database: str,
    state: State,
    is_due: Judge,
    *,
    before: datetime,
    since: datetime | None = None,
    size: int = BATCH_SIZE,
    is_real: bool = True,
) -> Iterator[Batch]:
    """Go along the jobs that ended between two moments; clear those that are due.

    Nothing is looked at twice: what stays is behind the walk as what is gone. Only one
    batch is in memory.
    """
    if size < 1:
        raise ValueError(f"A batch has at least one job, not {size!r}.")
    limit = min(size, LARGEST_BATCH)
    milestone = None if since is None else Milestone(since)
    while True:
        store = store_for(database)
        found = store.ended(state, before=before, after=milestone, limit=limit)
        if not found:
            return
        due = [each for each in found if is_due(each)]
        ids = [each.job_id for each in due]
        if is_real:
            complete_before_clearing(database, ids)
        cleared = store.clear(state, ids, before=before) if is_real else set(ids)
        yield Batch(walked=found, due=due, cleared=cleared)
        if len(found) < limit:
            return
        milestone = found[-1].milestone


def _rounds(
    database: str, state: State, choice: Choice
) -> Iterator[tuple[datetime, Judge]]:
    if choice.finished_before is not None:
        yield _stored(choice.finished_before), choice.includes
        return
    now = timezone.now()
    for rule in rules(database):
        if rule.state == state:
            yield rule.before(now), _both(rule.covers, choice.includes)


def _both(first: Judge, second: Judge) -> Judge:
    return lambda job: first(job) and second(job)


def _stored(moment: datetime) -> datetime:
    if settings.USE_TZ and timezone.is_naive(moment):
        moment = timezone.make_aware(moment)
    return as_stored(moment)
