"""Lanes: the ways in which a worker runs its jobs, in threads or as coroutines.

The main thread hands claims over and is told of each one that has ended. What becomes
of a claim is written on the page before anybody acts on it.
"""

import logging
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.utils import timezone

from robust_queue import policies
from robust_queue.context import Running, enter
from robust_queue.exceptions import IsolationError, TaskCancelled
from robust_queue.lifecycle import announce
from robust_queue.lifecycle.perform import Attempt, Performed, begin
from robust_queue.lifecycle.policy import terms_for
from robust_queue.lifecycle.unique import unlock_at_start
from robust_queue.reports import report
from robust_queue.stores.rows import Claim

from . import clock
from .connections import clean_up_after_task, prepare_for_task
from .exits import leave_out_of_memory
from .foresight import STALE, Foresight
from .held import Ended, Held, heard
from .limits import end_of
from .page import Page
from .pool import Errand

logger = logging.getLogger("robust_queue")

# Seconds for which a thread tells of ends before it looks for tasks again.
AT_A_STRETCH = 0.005
# Seconds for which a lane takes nothing when what it had has waited in vain, unless
# something comes to its end.
REST = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """What a lane knows of its worker."""

    database: str
    worker_name: str
    page: Page
    # Places on the page that are free, common to all lanes. Given back by other
    # threads. The latest one is taken first: the less of the page is written to, the
    # less memory it takes.
    slots: deque[int]
    # Asked right before a job begins: the worker may be about to stop, or may have
    # slept while its claims were given to somebody else.
    may_begin: Callable[[], bool]
    on_end: Callable[[Ended], None]
    # There is room again.
    wake: Callable[[], None]
    # This process is to be replaced by another one, for the reason that is told.
    recycle: Callable[[str], None] = lambda reason: None
    # Are tasks that ask for a process of their own run without one?
    isolates_nothing: bool = False


class Lane(ABC):
    """Runs so many jobs at a time, and holds those that are to be run next."""

    def __init__(self, size: int, duty: Duty) -> None:
        self._size = size
        self._duty = duty
        self._waiting: deque[Held] = deque()
        # Claims that have not ended, and ends that somebody is being told of.
        self._taken = 0
        self._telling: dict[Held, Ended] = {}
        self._ended = self._over = 0  # how many ever were
        self._foresight = Foresight(size)
        self._rests_until = 0.0
        self._is_heard = True  # is anybody, when a task begins?
        self.looks_ahead = True

    # ── For the main thread ────────────────────────────────────────────────────

    @property
    def room(self) -> int:
        """For how many more jobs there is room."""
        if clock.now() < self._rests_until:
            return 0
        ahead = self._foresight.ahead if self.looks_ahead else 0
        free = self._size + ahead - self._taken - len(self._telling)
        return max(min(free, len(self._duty.slots)), 0)

    @property
    def is_idle(self) -> bool:
        """Is nothing at hand for whoever comes to an end next?"""
        return not self._waiting

    @property
    def is_telling(self) -> bool:
        """Is somebody still to be told of an end?"""
        return bool(self._telling)

    def prick_up_ears(self) -> None:
        """Find out whether anybody listens, for all the claims that come now."""
        self._is_heard = announce.is_heard("task_started", is_from_backport=True)

    def reserve(self, claim: Claim, *, counts: bool = True) -> Held:
        """Take a claim on; there must be a place for it."""
        slot = self._duty.slots.pop()
        held = Held(claim, slot, self, clock.now(), counts=counts)
        self._duty.page.reserve(slot, claim)
        if not self._taken:
            self._foresight.begin(held.since)
        self._taken += counts
        return held

    def learn(self, ended: Sequence[Ended], *, turnaround: float) -> None:
        """These have ended since the last time; asking for more took so long."""
        self._taken -= sum([each.held.counts for each in ended])
        done = [each for each in ended if each.performed]
        if done:
            self._rests_until = 0.0
        # Before anybody asks for room: a job that is taken must not wait for listeners.
        self._telling |= {each.held: each for each in heard(done)}
        self._ended += len(done)
        # Over for a thread is what somebody has been told of.
        over, self._over = self._over, self._ended - len(self._telling)
        self._foresight.learn(self._over - over, turnaround=turnaround, now=clock.now())

    def recall(self) -> Iterator[Held]:
        """Take back what has not been begun, the latest first."""
        while self._waiting:
            with suppress(IndexError):  # somebody may begin it this very moment
                yield self._waiting.pop()

    def recall_stale(self) -> list[Held]:
        """Take everything back if something has waited for too long."""
        stale_in, now = self._stale_in, clock.now()
        if stale_in > 0:
            return []
        self._foresight.forget()
        # Nobody comes to it. What would be taken now would only go back again.
        self._rests_until = now + REST
        return list(self.recall())

    @property
    def patience(self) -> float:
        """Seconds until the main thread should look after this lane."""
        return self._stale_in

    @property
    def _stale_in(self) -> float:
        try:
            return self._waiting[0].since + STALE - clock.now()
        except IndexError:
            return math.inf

    def let_go(self, held: Held) -> None:
        """The claim is nobody's business any more."""
        self._duty.page.clear(held.slot)
        self._duty.slots.append(held.slot)

    def announce(self, done: Iterable[Ended], recorded: Container[UUID]) -> None:
        """Tell the world of outcomes that were recorded, in another thread.

        Whoever listens may take long. There is room for others only then.
        """
        heard = deque[Ended]()
        for each in done:
            if each.held not in self._telling:
                continue
            if each.held.claim.job_id in recorded:
                heard.append(each)
            else:
                del self._telling[each.held]
        try:
            if heard:
                self.submit(partial(self._announce, heard))
        except Exception as error:
            # No thread can be started. They are recorded, nobody is told of them.
            report(error, "the end of jobs was to be announced")
            for each in heard:
                del self._telling[each.held]

    def cancel(self, held: Held) -> bool:
        """Somebody asks for the end of a job, which has begun or has not.

        False if it begins this very moment: that has to be asked again.
        """
        if held.running is not None:
            self._cancel_running(held, held.running)
            return True
        # Made before it is taken out: what it takes may be a query, and may fail.
        attempt = Attempt(
            held.claim, database=self._duty.database, worker_id=self._duty.worker_name
        )
        try:
            self._waiting.remove(held)
        except ValueError:
            return False
        error = TaskCancelled("The job was cancelled before it began.")
        self._end(held, attempt.failed(error))
        return True

    def _cancel_running(self, held: Held, running: Running) -> None:
        """The task may ask for it, and end by itself."""
        running.is_cancelled = True

    @abstractmethod
    def submit(self, errand: Errand) -> None:
        """Do something for a job of this lane, in another thread."""

    @abstractmethod
    def run(self, held: Held) -> None:
        """Begin the job as soon as possible, and see to it that its end is told."""

    # ── In other threads ───────────────────────────────────────────────────────

    def _announce(self, heard: deque[Ended]) -> None:
        """Tell of one after the other, and let tasks have the thread in between."""
        try:
            # With connections as a task has them: who listens may query.
            prepare_for_task()
            self._tell_of_some(heard)
            clean_up_after_task()
        finally:
            # Whoever listens takes long: from now on two do it.
            half = deque(heard.popleft() for _ in range(len(heard) // 2))
            for rest in filter(None, (half, heard)):
                self.submit(partial(self._announce, rest))
            self._duty.wake()

    def _tell_of_some(self, heard: deque[Ended]) -> None:
        ends = clock.now() + AT_A_STRETCH
        while heard:
            self._tell_of(heard.popleft())
            if clock.now() > ends:
                break

    def _tell_of(self, ended: Ended) -> None:
        try:
            if ended.performed:
                ended.performed.announce()
        finally:
            del self._telling[ended.held]

    def _begin(self, held: Held) -> Attempt | Performed | None:
        """Everything before the call of the task; None if it could not be begun."""
        if not self._may_begin(held.claim):
            return None
        terms = terms_for(held.claim)
        policy, claim = terms.policy, held.claim
        runs_again = policies.may_run_again(policy, attempts=claim.attempts)
        held.ends = end_of(policy)
        self._duty.page.start(held.slot, runs_again=runs_again, ends=held.ends)
        held.running = running = Running(claim)
        if policy.is_timed:
            running.ends_at = policies.ends_at(
                policy, claim.enqueued_at, now=timezone.now()
            )
        try:
            enter(claim, running)
            if policy.isolation == "process" and not self._duty.isolates_nothing:
                return self._refused(claim)
            return begin(
                claim,
                database=self._duty.database,
                worker_id=self._duty.worker_name,
                terms=terms,
                is_heard=self._is_heard,
            )
        except MemoryError:
            leave_out_of_memory()
        except Exception:
            # Nothing of the task: it had not begun.
            logger.exception("Job %s could not be begun.", held.claim.job_id)
        return None

    def _may_begin(self, claim: Claim) -> bool:
        """Is nothing in its way? To let go of its key may take as long as it likes."""
        try:
            if claim.unique_key and self._duty.may_begin():
                unlock_at_start(claim, database=self._duty.database)
        except Exception:
            logger.exception("Job %s could not be begun.", claim.job_id)
            return False
        # Behind that: by now this worker may be about to stop, or taken for dead.
        return self._duty.may_begin()

    def _refused(self, claim: Claim) -> Performed:
        """It may do harm here, and nobody is there to run it elsewhere."""
        attempt = Attempt(
            claim, database=self._duty.database, worker_id=self._duty.worker_name
        )
        problem = IsolationError(
            f"{claim.task_path} asks for a process of its own, which nobody expected "
            "when this worker was started. Name its module in "
            "ROBUST_QUEUE['task_modules']."
        )
        return attempt.failed(problem)

    def _end(self, held: Held, performed: Performed | None) -> None:
        is_kept = False
        try:
            if performed:
                is_kept = self._duty.page.finish(held.slot, performed.outcome)
        finally:
            # Whatever goes wrong: a job that has run must not run again. What is too
            # large for the page is not safe before it is recorded.
            self._duty.on_end(Ended(held, performed, is_urgent=not is_kept))
