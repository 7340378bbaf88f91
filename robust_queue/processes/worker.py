"""The worker: one thread talks to the queue, others run tasks.

The main thread claims, hands over to the lanes, and settles what they have done.
"""

import logging
from collections import deque
from collections.abc import Container, Sequence
from uuid import UUID

from robust_queue import registry
from robust_queue.configuration import WorkerConfiguration, current
from robust_queue.lifecycle import recover
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.settle import settle
from robust_queue.reports import report
from robust_queue.stores.rows import Claim

from . import clock
from .actor import LONGEST_PAUSE, Actor, Surroundings, jittered
from .capacity import Capacity, Count
from .coroutines import Coroutines, is_coroutine
from .fatigue import Fatigue
from .lanes import Duty, Ended, Held, Lane, Threads
from .listener import Listener, can_listen
from .pace import Pace
from .patience import Patience

logger = logging.getLogger("robust_queue")

# What coroutines that are cancelled at the end have to clean up.
GRACE = 0.5


class Worker(Actor):
    """Takes jobs from its queues, as many as it has room for, and runs them."""

    kind = "Worker"

    def __init__(
        self,
        configuration: WorkerConfiguration,
        *,
        database: str,
        around: Surroundings,
    ) -> None:
        super().__init__(database)
        self._configuration = configuration
        self._around = around
        self._page = page = around.page
        duty = Duty(
            database=database,
            worker_name=around.name,
            page=page,
            may_begin=lambda: not self._is_stopping and around.trusts(),
            on_end=self._note_end,
            wake=around.wake,
        )
        self._threads = Threads(page.slots[: configuration.threads], duty)
        self._coroutines = Coroutines(page.slots[configuration.threads :], duty)
        self._capacity = Capacity(self._room)
        self._held: dict[UUID, Held] = {}
        self._ended: deque[Ended] = deque()  # filled by the lanes, in their threads
        self._unsettled: list[Ended] = []
        # Grows where jobs cannot be begun: they would come around in no time.
        self._reluctance = Patience()
        self._is_stopping = False
        self._next_inspection = 0.0
        self._fatigue = Fatigue(configuration)
        self._listener: Listener | None = None
        if can_listen(database):
            self._listener = Listener(
                configuration, database=database, on_news=self._note_news
            )
        self._has_news = False  # set by the listener
        interval = configuration.polling_interval.total_seconds()
        self._pace = Pace(interval, hears=self._hears)

    def start(self) -> None:
        if any(map(is_coroutine, registry.discover().values())):
            self._capacity.expect_coroutines()
        self._threads.start()
        self._fatigue.begin()
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

    def finish(self, *, timeout: float) -> None:
        if self._listener:
            self._listener.stop(timeout)
        self._threads.finish(timeout)
        self._coroutines.finish(timeout)

    def give_up(self) -> None:
        self._coroutines.give_up(within=GRACE)

    def cancel(self, job_id: UUID) -> bool:
        """Cancel the coroutine of a job, from any thread; False if none is in flight.

        Its CancelledError is the failure of the job, unless the task catches it.
        """
        return self._coroutines.cancel(job_id)

    # ── Claim ──────────────────────────────────────────────────────────────────

    def _claim(self) -> float:
        # A process that may have been taken for dead begins nothing new.
        if not self._around.trusts():
            return LONGEST_PAUSE
        if not self._reluctance.is_over:
            return self._reluctance.left
        room = self._room
        limit = self._capacity.limit(room, now=clock.now())
        if not limit:
            # The next turn comes when there is room, at the latest.
            return min(self._capacity.pause(room, now=clock.now()), LONGEST_PAUSE)
        begun = clock.now()
        claims = claim(
            self.database,
            process_id=self._around.identity,
            queues=self._configuration.patterns,
            limit=limit,
            is_likely=self._pace.is_busy,
        )
        self._hand_over(claims, room, limit)
        if claims:
            self._pace.quicken()
        # Full: there may be more, and even room for it.
        return 0.0 if len(claims) == limit else self._pace.pause(begun)

    @property
    def _room(self) -> Count:
        return Count(self._threads.room, self._coroutines.room)

    def _hand_over(self, claims: Sequence[Claim], room: Count, limit: int) -> None:
        """Begin what there is room for; others may have room for the rest."""
        lanes = [self._lane_of(each) for each in claims]
        came = Count(lanes.count(self._threads), lanes.count(self._coroutines))
        surplus = [
            each
            for each, lane in zip(claims, lanes, strict=True)
            if not self._is_begun(each, lane)
        ]
        self._capacity.learn(room, came, limit=limit, now=clock.now())
        release(self.database, surplus)

    def _lane_of(self, claimed: Claim) -> Lane:
        has_loop = self._configuration.coroutines > 0
        if has_loop and is_coroutine(registry.find(claimed.task_path)):
            return self._coroutines
        return self._threads

    def _is_begun(self, claimed: Claim, lane: Lane) -> bool:
        if not lane.room:
            return False
        held = self._held[claimed.job_id] = lane.reserve(claimed)
        try:
            lane.run(held)
        except Exception:
            # No thread can be started, or no descriptor is left. It has not begun.
            logger.exception("Job %s could not be begun.", claimed.job_id)
            self._note_end(Ended(held, None))
        return True

    def _hears(self) -> bool:
        return self._listener is not None and self._listener.hears

    def _note_news(self) -> None:
        self._has_news = True
        self._around.wake()

    # ── Settle ─────────────────────────────────────────────────────────────────

    def _note_end(self, ended: Ended) -> None:
        self._ended.append(ended)
        self._around.wake()

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
            self._announce(each, recorded)

    def _announce(self, ended: Ended, recorded: Container[UUID]) -> None:
        try:
            ended.held.lane.announce(ended, recorded)
        except Exception as error:
            # No thread can be started. The outcome is recorded, nobody is told of it.
            report(error, "the end of a job was to be announced")
            ended.held.lane.let_go(ended.held)

    def _give_back(self, ended: Sequence[Ended]) -> None:
        release(self.database, [each.held.claim for each in ended])
        self._forget(ended)
        for each in ended:
            each.held.lane.let_go(each.held)
        if ended and not self._is_stopping:
            self._reluctance.fail()

    def _forget(self, ended: Sequence[Ended]) -> None:
        for each in ended:
            self._unsettled.remove(each)
            del self._held[each.held.claim.job_id]
            self._page.clear(each.held.slot)

    # ── Fatigue ────────────────────────────────────────────────────────────────

    def _ask_for_successor_if_tired(self) -> None:
        reason = "" if self._page.is_tired else self._fatigue.reason
        if reason:
            logger.info("%s asks for a successor: %s.", self._around.name, reason)
            self._page.show_tired()
            self._around.wake_supervisor()

    # ── Inspect ────────────────────────────────────────────────────────────────

    def _inspect(self) -> None:
        """Give back claims of this process that it does not know of.

        The database may have granted a claim whose reply never came.
        """
        known = {(held.claim.job_id, held.claim.token) for held in self._held.values()}
        claims = recover.claims_of(self.database, self._around.identity)
        strangers = [each for each in claims if (each.job_id, each.token) not in known]
        released = release(self.database, strangers)
        if released:
            logger.warning("%d claims whose reply was lost went back.", len(released))
        interval = current().process_heartbeat_interval.total_seconds()
        self._next_inspection = clock.now() + jittered(interval)
