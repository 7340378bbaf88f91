"""What a worker has at hand, shared by its threads: jobs to do, and reports to send.

A job is waiting, running or ended until the queue has answered to its report. When the
worker was taken for dead all of them are lost: nothing that comes of them counts.
"""

import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from .jobs import Job, Outcome, outcome
from .registered import Registered

MOST_AT_ONCE = 100
# With so many reports that cannot be sent it is of no use to take more jobs.
MOST_UNSENT = 2 * MOST_AT_ONCE
# Answers that come later may tell of claims that the queue has taken back meanwhile,
# which it does after a minute. It is not told what is held while one is due, and asked
# anew if none comes.
ANSWER_IS_OLD = 45.0

Key = tuple[str, str]


class Held(NamedTuple):
    """The jobs at hand, and the latest ``now`` of the queue that was heard by then."""

    jobs: list[str]
    as_of: str


class Bench:
    """Who is at work here, on what."""

    def __init__(self, *, hands: int, ahead: int) -> None:
        self._hands, self._ahead = hands, ahead
        self._changed = threading.Condition()
        self._registered: Registered | None = None
        self._waiting: deque[Job] = deque()
        self._running: set[Job] = set()
        # Running, but not this worker's any more.
        self._lost: set[Job] = set()
        self._ended: dict[Key, Outcome] = {}
        self._asked_at: float | None = None
        self._heard: str | None = None
        self._is_leaving = self._is_closed = self._is_abandoned = False

    # ── Who ────────────────────────────────────────────────────────────────────

    @property
    def registered(self) -> Registered | None:
        """As whom it works; None if it has to register."""
        return self._registered

    def begin(self, registered: Registered) -> None:
        """From now on it works as this one."""
        with self._changed:
            self._registered = registered
            self._changed.notify_all()

    def lose(self, registered: Registered | None) -> None:
        """That one was taken for dead: whatever it has is somebody else's."""
        with self._changed:
            if registered is None or registered is not self._registered:
                return
            self._registered = None
            self._waiting.clear()
            self._ended.clear()
            self._lose_running()
            self._changed.notify_all()

    # ── Jobs come ──────────────────────────────────────────────────────────────

    def room(self) -> int:
        """For how many jobs; waits until there is some, or nobody it works as."""
        with self._changed:
            self._changed.wait_for(self._may_ask)
            is_over = self._is_leaving or self._registered is None
            self._asked_at = None if is_over else time.monotonic()
            return 0 if is_over else min(self._room(), MOST_AT_ONCE)

    def put(
        self,
        registered: Registered,
        jobs: Iterable[Job],
        cancelled: Collection[str] = (),
    ) -> None:
        """These were given to that one; some of them may be cancelled already."""
        with self._changed:
            self._asked_at = None
            if registered is self._registered:
                self._waiting += jobs
                self.cancel(cancelled)
                if self._is_leaving:
                    self.give_back()
            self._changed.notify_all()

    def expect_nothing(self) -> None:
        """No answer is due any more: nobody will hear it."""
        with self._changed:
            self._asked_at = None

    def next(self) -> Job | None:
        """A job to be begun now, when there is one; None at the end."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return None
                job = self._waiting.popleft()
                if not job.is_late:
                    self._running.add(job)
                    return job
                # Not begun in time: another attempt has time of its own.
                self._end(job, outcome(job, "released"))

    # ── Jobs go ────────────────────────────────────────────────────────────────

    def end(self, job: Job, ended: Outcome) -> None:
        """That is what came of a job."""
        with self._changed:
            self._running.discard(job)
            if job in self._lost:
                self._lost.discard(job)
            else:
                self._end(job, ended)
            self._changed.notify_all()

    def reports(self) -> tuple[Registered | None, list[Outcome]]:
        """What is to be reported, and by whom, when there is something; or the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._is_closed)
            some = list(self._ended.values())[:MOST_AT_ONCE]
            return self._registered, some

    def answered(self, reports: Sequence[Outcome]) -> None:
        """The queue has heard these."""
        with self._changed:
            for each in reports:
                self._ended.pop(_key(each), None)
            self._changed.notify_all()

    # ── What is there ──────────────────────────────────────────────────────────

    def hear(self, now: str) -> None:
        """That is what the clock of the queue showed when it answered."""
        with self._changed:
            self._heard = now

    def held(self) -> Held | None:
        """The jobs it holds; None if that cannot be told, as there may be more."""
        with self._changed:
            # Of what was abandoned, and may run on, nothing is to go back by that.
            is_vague = self._is_abandoned or self._is_answer_old()
            if self._heard is None or is_vague:
                return None
            at_hand = [*self._waiting, *(self._running - self._lost)]
            jobs = [each.id for each in at_hand] + [job for job, _ in self._ended]
            return Held(jobs, self._heard)

    def cancel(self, ids: Collection[str]) -> None:
        """Somebody wants these to end; those that have not begun have ended."""
        with self._changed:
            for each in [it for it in self._waiting if it.id in ids]:
                self._waiting.remove(each)
                self._end(each, outcome(each, "cancelled"))
            for each in self._running:
                if each.id in ids:
                    each.cancel()

    def give_back(self) -> None:
        """What has not begun is not to begin here."""
        with self._changed:
            while self._waiting:
                job = self._waiting.popleft()
                self._end(job, outcome(job, "released"))

    # ── The end ────────────────────────────────────────────────────────────────

    def leave(self) -> None:
        """Begin nothing any more: what has not begun goes back."""
        with self._changed:
            self._is_leaving = True
            self.give_back()
            self._changed.notify_all()

    def is_empty(self, within: float) -> bool:
        """Is everything done and reported, at the latest in so many seconds?"""
        with self._changed:
            return self._changed.wait_for(self._is_empty, within)

    def abandon(self, within: float) -> int:
        """Have end what runs, for nothing; how many run on after so many seconds?

        Until then what has ended before is reported.
        """
        with self._changed:
            self._is_abandoned = True
            mine = self._running - self._lost
            self._lose_running()
            self._changed.wait_for(
                lambda: not (self._ended or mine & self._running), within
            )
            return len(mine & self._running)

    def close(self) -> None:
        """Nobody waits here any longer."""
        with self._changed:
            self._is_leaving = self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _lose_running(self) -> None:
        # Before they hear of it: one that ends because of that has not succeeded.
        self._lost |= self._running
        for each in self._running:
            each.cancel()

    def _is_answer_old(self) -> bool:
        asked_at = self._asked_at
        return asked_at is not None and time.monotonic() - asked_at > ANSWER_IS_OLD

    def _is_empty(self) -> bool:
        return not (self._waiting or self._ended or self._running - self._lost)

    def _may_ask(self) -> bool:
        if self._is_leaving or self._registered is None:
            return True
        # Not for every single job that is taken from those ahead.
        is_low = len(self._waiting) <= self._ahead // 2
        return is_low and self._room() > 0 and len(self._ended) < MOST_UNSENT

    def _room(self) -> int:
        taken = len(self._waiting) + len(self._running)
        return self._hands + self._ahead - taken

    def _end(self, job: Job, ended: Outcome) -> None:
        self._ended[_key(ended)] = ended
        self._changed.notify_all()


def _key(ended: Outcome) -> Key:
    # The same job may be taken again before its first report is answered.
    return ended["job"], ended["token"]
