"""The worker: one thread talks to the queue, the others run tasks.

The main thread claims, hands over, and settles; the threads of the pool perform. What
becomes of each claim is written on the page before anybody acts on it.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from robust_queue import policies, registry
from robust_queue.configuration import WorkerConfiguration, current
from robust_queue.lifecycle import recover
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.perform import Performed, perform
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.settle import settle
from robust_queue.stores.rows import Claim

from . import clock
from .actor import LONGEST_PAUSE, Actor, jittered
from .connections import clean_up_after_task, prepare_for_task
from .exits import ExitCode
from .fatigue import Fatigue
from .listener import Listener, can_listen
from .pace import Pace
from .page import Page
from .patience import Patience
from .pool import Pool

logger = logging.getLogger("robust_queue")


@dataclass(frozen=True, slots=True)
class Held:
    """A claim of this worker, and its place on the page."""

    claim: Claim
    slot: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A claim that a thread has done with; nothing came of it if it never began."""

    held: Held
    performed: Performed | None


class Worker(Actor):
    """Takes jobs from its queues, as many as it has threads, and runs them."""

    kind = "Worker"

    def __init__(
        self,
        configuration: WorkerConfiguration,
        *,
        database: str,
        identity: UUID,
        name: str,
        page: Page,
        trusts: Callable[[], bool],
        wake: Callable[[], None],
        wake_supervisor: Callable[[], None],
    ) -> None:
        super().__init__(database)
        self._configuration = configuration
        self._identity = identity
        self._name = name
        self._page = page
        self._trusts = trusts
        self._wake = wake
        self._wake_supervisor = wake_supervisor
        self._pool = Pool(configuration.threads)
        self._free = deque(page.slots)  # given back by the threads of the pool
        self._held: dict[UUID, Held] = {}
        self._ended: deque[Ended] = deque()  # filled by the threads of the pool
        self._unsettled: list[Ended] = []
        # Grows where jobs cannot be begun: they would come around in no time.
        self._reluctance = Patience()
        self._is_stopping = False
        self._next_inspection = 0.0
        self._listener = (
            Listener(configuration, database=database, on_news=self._note_news)
            if can_listen(database)
            else None
        )
        self._has_news = False  # set by the listener
        self._fatigue = Fatigue(configuration)
        self._pace = Pace(
            configuration.polling_interval.total_seconds(), hears=self._hears
        )

    def start(self) -> None:
        self._pool.start()
        if self._listener:
            self._listener.start()

    def turn(self) -> float:
        if self._has_news:
            self._has_news = False
            self._pace.quicken()
        if self._listener:
            self._listener.probe()
        self._settle()
        self._ask_for_successor_if_tired()
        if clock.now() >= self._next_inspection:
            self._inspect()
        if self._is_stopping:
            return LONGEST_PAUSE
        return self._claim()

    def recover(self) -> None:
        # A claim may have succeeded although its reply was lost.
        self._next_inspection = 0.0

    @property
    def is_busy(self) -> bool:
        return bool(self._held)

    def stop(self) -> None:
        self._is_stopping = True

    def finish(self) -> None:
        if self._listener:
            self._listener.stop()
        self._pool.finish(timeout=1.0)

    # ── Claim ──────────────────────────────────────────────────────────────────

    def _claim(self) -> float:
        room = len(self._free)
        # A process that may have been taken for dead begins nothing new.
        if not room or not self._trusts():
            return LONGEST_PAUSE
        if not self._reluctance.is_over:
            return self._reluctance.left
        claims = claim(
            self.database,
            process_id=self._identity,
            queues=self._configuration.patterns,
            limit=room,
        )
        for each in claims:
            self._hand_over(each)
        if claims:
            self._pace.quicken()
        # Full: the next turn comes when a thread has done.
        return LONGEST_PAUSE if len(claims) == room else self._pace.pause()

    def _hand_over(self, claimed: Claim) -> None:
        held = Held(claimed, self._free.popleft())
        self._held[claimed.job_id] = held
        self._page.reserve(held.slot, claimed)
        self._pool.submit(partial(self._run, held))

    def _hears(self) -> bool:
        return self._listener is not None and self._listener.hears

    def _note_news(self) -> None:
        self._has_news = True
        self._wake()

    # ── Perform, in a thread of the pool ───────────────────────────────────────

    def _run(self, held: Held) -> None:
        performed = None
        try:
            # Looked at here, so that nothing begins once the worker is to stop, or
            # has slept while its claims were given to somebody else.
            if not self._is_stopping and self._trusts():
                performed = self._perform(held)
            if performed:
                self._page.finish(held.slot, performed.outcome)
        finally:
            # Before anything else can go wrong: a job that has run must not run again.
            self._ended.append(Ended(held, performed))
            self._wake()
        clean_up_after_task()

    def _perform(self, held: Held) -> Performed | None:
        task = registry.find(held.claim.task_path)
        runs_again = policies.may_run_again(task, attempts=held.claim.attempts)
        prepare_for_task()
        self._page.start(held.slot, runs_again=runs_again)
        try:
            return perform(held.claim, database=self.database, worker_id=self._name)
        except MemoryError:
            # The task may have used it up, so that not even its failure could be made
            # up. The page says that it had begun.
            os._exit(ExitCode.BROKEN)
        except Exception:
            # Nothing of the task: it had not begun.
            logger.exception("Job %s could not be begun.", held.claim.job_id)
            return None

    # ── Settle ─────────────────────────────────────────────────────────────────

    def _settle(self) -> None:
        """Record what has ended. An error leaves the rest for the next turn."""
        while self._ended:
            self._unsettled.append(self._ended.popleft())
        self._record([each for each in self._unsettled if each.performed])
        self._give_back([each for each in self._unsettled if not each.performed])

    def _record(self, ended: Sequence[Ended]) -> None:
        performed = [each.performed for each in ended if each.performed]
        recorded = settle(self.database, [each.outcome for each in performed])
        self._fatigue.add(len(performed))
        self._forget(ended)
        for each in ended:
            self._reluctance.succeed()
            self._pool.submit(partial(self._announce, each, recorded))

    def _give_back(self, ended: Sequence[Ended]) -> None:
        release(self.database, [each.held.claim for each in ended])
        self._forget(ended)
        self._free.extend(each.held.slot for each in ended)
        if ended and not self._is_stopping:
            self._reluctance.fail()

    def _forget(self, ended: Sequence[Ended]) -> None:
        for each in ended:
            self._unsettled.remove(each)
            del self._held[each.held.claim.job_id]
            self._page.clear(each.held.slot)

    def _announce(self, ended: Ended, recorded: Container[UUID]) -> None:
        """Tell the world, in a thread of the pool: whoever listens may take long.

        Its slot is free only then. A job that is taken must not wait for listeners.
        """
        try:
            if ended.performed and ended.held.claim.job_id in recorded:
                # With connections as a task has them: who listens may query.
                prepare_for_task()
                ended.performed.announce()
                clean_up_after_task()
        finally:
            self._free.append(ended.held.slot)
            self._wake()

    # ── Fatigue ────────────────────────────────────────────────────────────────

    def _ask_for_successor_if_tired(self) -> None:
        reason = "" if self._page.is_tired else self._fatigue.reason
        if reason:
            logger.info("%s asks for a successor: %s.", self._name, reason)
            self._page.show_tired()
            self._wake_supervisor()

    # ── Inspect ────────────────────────────────────────────────────────────────

    def _inspect(self) -> None:
        """Give back claims of this process that it does not know of.

        The database may have granted a claim whose reply never came.
        """
        known = {(held.claim.job_id, held.claim.token) for held in self._held.values()}
        claims = recover.claims_of(self.database, self._identity)
        strangers = [each for each in claims if (each.job_id, each.token) not in known]
        released = release(self.database, strangers)
        if released:
            logger.warning("%d claims whose reply was lost went back.", len(released))
        interval = current().process_heartbeat_interval.total_seconds()
        self._next_inspection = clock.now() + jittered(interval)
