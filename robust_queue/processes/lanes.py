"""Lanes: the ways in which a worker runs its jobs, in threads or as coroutines.

The main thread hands claims over and is told of each one that has ended. What becomes
of a claim is written on the page before anybody acts on it.
"""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from robust_queue import policies, registry
from robust_queue.lifecycle.perform import Attempt, Performed, begin
from robust_queue.stores.rows import Claim

from .connections import clean_up_after_task, prepare_for_task
from .exits import leave_out_of_memory
from .page import Page
from .pool import Errand, Pool

logger = logging.getLogger("robust_queue")


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A claim of this worker, and its place on the page."""

    claim: Claim
    slot: int
    lane: "Lane"


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """A claim that its lane has done with; nothing came of it if it never began."""

    held: Held
    performed: Performed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """What a lane knows of its worker."""

    database: str
    worker_name: str
    page: Page
    # Asked right before a job begins: the worker may be about to stop, or may have
    # slept while its claims were given to somebody else.
    may_begin: Callable[[], bool]
    on_end: Callable[[Ended], None]
    # There is room again.
    wake: Callable[[], None]


class Lane(ABC):
    """Runs as many jobs at a time as it has places on the page."""

    def __init__(self, slots: Iterable[int], duty: Duty) -> None:
        # Given back by other threads. The latest one is taken first: the less of the
        # page is written to, the less memory it takes.
        self._free = deque(slots)
        self._duty = duty

    @property
    def room(self) -> int:
        """For how many more jobs there is room."""
        return len(self._free)

    def reserve(self, claim: Claim) -> Held:
        """Take a claim on; there must be room."""
        held = Held(claim, self._free.pop(), self)
        self._duty.page.reserve(held.slot, claim)
        return held

    @abstractmethod
    def submit(self, errand: Errand) -> None:
        """Do something for a job of this lane, in another thread."""

    @abstractmethod
    def run(self, held: Held) -> None:
        """Begin the job, and see to it that its end is told."""

    def let_go(self, held: Held) -> None:
        """The claim is nobody's business any more."""
        self._free.append(held.slot)

    def announce(self, ended: Ended, recorded: Container[UUID]) -> None:
        """Tell the world of an outcome that was recorded, in another thread.

        Whoever listens may take long. The place is free only then: a job that is taken
        must not wait for listeners.
        """
        self.submit(partial(self._announce, ended, recorded))

    def _announce(self, ended: Ended, recorded: Container[UUID]) -> None:
        try:
            if ended.performed and ended.held.claim.job_id in recorded:
                # With connections as a task has them: who listens may query.
                prepare_for_task()
                ended.performed.announce()
                clean_up_after_task()
        finally:
            self.let_go(ended.held)
            self._duty.wake()

    def _begin(self, held: Held) -> Attempt | Performed | None:
        """Everything before the call of the task; None if it could not be begun."""
        if not self._duty.may_begin():
            return None
        task = registry.find(held.claim.task_path)
        runs_again = policies.may_run_again(task, attempts=held.claim.attempts)
        prepare_for_task()
        self._duty.page.start(held.slot, runs_again=runs_again)
        try:
            return begin(
                held.claim,
                database=self._duty.database,
                worker_id=self._duty.worker_name,
            )
        except MemoryError:
            leave_out_of_memory()
        except Exception:
            # Nothing of the task: it had not begun.
            logger.exception("Job %s could not be begun.", held.claim.job_id)
        return None

    def _end(self, held: Held, performed: Performed | None) -> None:
        try:
            if performed:
                self._duty.page.finish(held.slot, performed.outcome)
        finally:
            # Whatever goes wrong: a job that has run must not run again.
            self._duty.on_end(Ended(held, performed))


class Threads(Lane):
    """Runs each job in a thread, from its beginning to its end."""

    def __init__(self, slots: Iterable[int], duty: Duty) -> None:
        super().__init__(slots, duty)
        self._pool = Pool(self.room)

    def start(self) -> None:
        self._pool.start()

    def finish(self, timeout: float) -> None:
        self._pool.finish(timeout)

    def submit(self, errand: Errand) -> None:
        self._pool.submit(errand)

    def run(self, held: Held) -> None:
        self.submit(partial(self._run, held))

    def _run(self, held: Held) -> None:
        performed = None
        try:
            begun = self._begin(held)
            performed = begun.run() if isinstance(begun, Attempt) else begun
        except MemoryError:
            leave_out_of_memory()
        finally:
            self._end(held, performed)
        clean_up_after_task()
