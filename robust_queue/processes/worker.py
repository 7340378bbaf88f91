"""The worker: one thread talks to the queue, others run tasks.

The main thread claims, hands over to the lanes, and settles what they have done.
"""

import logging
from collections import Counter, deque
from collections.abc import Container, Sequence
from uuid import UUID

from robust_queue import registry
from robust_queue.configuration import WorkerConfiguration
from robust_queue.lifecycle.claim import Claiming
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.settle import settle_and_claim
from robust_queue.stores import store_for
from robust_queue.stores.rows import Claim

from . import clock, isolation
from .actor import LONGEST_PAUSE, Actor, Surroundings
from .cancellations import Cancellations
from .capacity import Capacity, Count, whole
from .coroutines import Coroutines, is_coroutine
from .ears import Ears
from .fatigue import Fatigue
from .held import Ended, Held
from .isolation.lane import Isolated
from .lanes import Duty, Lane
from .outbox import Outbox
from .pace import Pace
from .patience import Patience
from .progress import Progress
from .strangers import Strangers
from .threads import Threads

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
        self._page = around.page
        self._slots = deque(around.page.slots)
        self._fatigue = Fatigue(configuration)
        duty = self._duty()
        self._threads = Threads(configuration.threads, duty)
        self._coroutines = Coroutines(configuration.coroutines, duty)
        self._lanes: tuple[Lane, ...] = (self._threads, self._coroutines)
        expected = isolation.expected(configuration)
        self._isolated: Isolated | None = None
        if "process" in expected:
            self._isolated = Isolated(configuration, duty)
            self._lanes += (self._isolated,)
        self._capacity = Capacity(whole(configuration, expected))
        self._held: set[Held] = set()
        self._outbox = Outbox(around.wake)
        self._turnaround = 0.0
        self._progress = Progress(
            is_followed=store_for(database).can_start_anywhere(configuration.patterns)
        )
        # Grows where jobs cannot be begun: they would come around in no time.
        self._reluctance = Patience()
        self._is_stopping = False
        self._strangers = Strangers(database, around.identity)
        self._ears = Ears(configuration, database=database, wake=around.wake)
        self._cancellations = Cancellations(database)
        interval = configuration.polling_interval.total_seconds()
        self._pace = Pace(interval, hears=self._ears.hear)

    def _duty(self) -> Duty:
        around = self._around
        return Duty(
            database=self.database,
            worker_name=around.name,
            page=around.page,
            slots=self._slots,
            may_begin=lambda: not self._is_stopping and around.trusts(),
            on_end=self._note_end,
            wake=around.wake,
            recycle=self._fatigue.be_exhausted,
            isolates_nothing=not self._configuration.most_isolated,
        )

    def prepare(self) -> None:
        if self._isolated:
            self._isolated.prepare()

    def start(self) -> None:
        if any(map(is_coroutine, registry.discover().values())):
            self._capacity.expect_coroutines()
        self._threads.start()
        if self._isolated:
            self._isolated.start()
        self._fatigue.begin()
        self._ears.start()

    def turn(self) -> float:
        is_news, is_cancelled = self._ears.take()
        if is_news:
            # Also plans a second look, which finds what this one may not.
            self._pace.quicken()
        self._ears.probe()
        self._take_back()
        self._end_unwanted(is_told=is_cancelled)
        self._threads.nudge()
        self._ask_for_successor_if_tired()
        self._strangers.give_back_if_due(self._held)
        pause = self._outbox.patience or self._trade(is_news=is_news)
        patience = self._cancellations.patience if self._held else LONGEST_PAUSE
        return min(pause, patience, *(lane.patience for lane in self._lanes))

    def recover(self) -> None:
        # A claim may have succeeded although its reply was lost.
        self._strangers.expect()

    @property
    def is_busy(self) -> bool:
        return bool(self._held) or any(lane.is_telling for lane in self._lanes)

    def stop(self) -> None:
        self._is_stopping = True

    def finish(self, *, timeout: float) -> None:
        self._ears.stop(timeout)
        self._threads.finish(timeout)
        self._coroutines.finish(timeout)
        if self._isolated:
            self._isolated.finish(timeout)

    def give_up(self) -> None:
        self._coroutines.give_up(within=GRACE)
        if self._isolated:
            self._isolated.give_up(within=GRACE)

    # ── Trade ──────────────────────────────────────────────────────────────────

    def _trade(self, *, is_news: bool = False) -> float:
        """Record what has ended and take on what there is room for, all at once.

        An error leaves what is not recorded for the next turn.
        """
        self._look_through()
        if self._isolated:
            # Before they are settled: what is told of a job must not outlive it.
            self._isolated.write_down()
        # Before anything is taken: it could be the very same job.
        self._give_back_unbegun()
        done = self._outbox.portion()
        room, begun = Count(*(lane.room for lane in self._lanes)), clock.now()
        limit, start = self._limit(room, now=begun), self._progress.start(begun)
        claiming = Claiming(
            process_id=self._around.identity,
            queues=self._configuration.patterns,
            limit=limit,
            is_likely=self._pace.is_busy,
            start=start,
            is_news=is_news,
        )
        outcomes = [each.performed.outcome for each in done if each.performed]
        recorded, claims = settle_and_claim(self.database, outcomes, claiming)
        self._turnaround = clock.now() - begun
        self._announce(done, recorded)
        if not limit:
            # The next turn comes when there is room, at the latest.
            left = self._capacity.pause(room, now=clock.now())
            return self._reluctant_for or min(left, LONGEST_PAUSE)
        self._hand_over(claims, room, limit)
        return self._pause_after(claims, claiming, begun)

    def _pause_after(
        self, claims: Sequence[Claim], claiming: Claiming, begun: float
    ) -> float:
        is_full = len(claims) == claiming.limit
        self._progress.learn(
            claims, start=claiming.start, is_full=is_full, begun=begun, now=clock.now()
        )
        if claims:
            self._pace.quicken()
        # There may be more, and even room for it.
        return 0.0 if is_full or claiming.start else self._pace.pause(begun)

    def _look_through(self) -> None:
        ended = self._outbox.collect()
        for lane in self._lanes:
            its_own = [each for each in ended if each.held.lane is lane]
            lane.learn(its_own, turnaround=self._turnaround)

    def _limit(self, room: Count, *, now: float) -> int:
        """How many jobs to take on."""
        if self._reluctant_for:
            return 0
        limit = min(self._capacity.limit(room, now=now), len(self._slots))
        # Whoever is to be replaced soon leaves the rest to others, until it is time.
        return int(min(limit, self._fatigue.tasks_left or limit))

    @property
    def _reluctant_for(self) -> float:
        """Seconds for which nothing new is to be begun."""
        # Least of all by a process that may have been taken for dead.
        if self._is_stopping or not self._around.trusts():
            return LONGEST_PAUSE
        return self._reluctance.left

    # ── Claims ─────────────────────────────────────────────────────────────────

    def _hand_over(self, claims: Sequence[Claim], room: Count, limit: int) -> None:
        """Begin what there is room for; others may have room for the rest."""
        left = dict(zip(self._lanes, room, strict=False))
        came, surplus = Counter[Lane](), []
        for lane in self._lanes:
            lane.prick_up_ears()
        for each in claims:
            lane = self._lane_of(each)
            came[lane] += 1
            if came[lane] > left[lane]:
                surplus.append(each)
            else:
                self._begin(each, lane)
        counts = Count(*(came[lane] for lane in self._lanes))
        self._capacity.learn(room, counts, limit=limit, now=clock.now())
        release(self.database, surplus)

    def _lane_of(self, claimed: Claim) -> Lane:
        if self._isolated and self._isolated.is_for(claimed):
            return self._isolated
        has_loop = self._configuration.coroutines > 0
        if has_loop and is_coroutine(registry.find(claimed.task_path)):
            return self._coroutines
        return self._threads

    def _begin(self, claimed: Claim, lane: Lane) -> None:
        held = lane.reserve(claimed)
        self._held.add(held)
        try:
            lane.run(held)
        except Exception:
            # No thread can be started, or no descriptor is left. It has not begun.
            logger.exception("Job %s could not be begun.", claimed.job_id)
            self._note_end(Ended(held, None))

    # ── Ends ───────────────────────────────────────────────────────────────────

    def _note_end(self, ended: Ended) -> None:
        """Called by the lanes, in their threads."""
        is_urgent = ended.is_urgent or ended.held.lane.is_idle
        self._outbox.add(ended, is_urgent=is_urgent)

    def _announce(self, done: Sequence[Ended], recorded: Container[UUID]) -> None:
        self._fatigue.add(len(done))
        self._forget(done)
        if done:
            self._reluctance.succeed()
        for lane in self._lanes:
            its_own = [each for each in done if each.held.lane is lane]
            lane.announce(its_own, recorded)
        self._cancellations.withdraw(done)

    def _take_back(self) -> None:
        """Take back what waits in vain: others may be free for it."""
        for lane in self._lanes:
            back = list(lane.recall()) if self._is_stopping else lane.recall_stale()
            for held in back:
                self._outbox.add(Ended(held, None, is_recalled=True), is_urgent=True)

    def _give_back_unbegun(self) -> None:
        unbegun = [each for each in self._outbox.unsettled if not each.performed]
        release(self.database, [each.held.claim for each in unbegun])
        self._forget(unbegun)
        if not (self._is_stopping or all(each.is_recalled for each in unbegun)):
            self._reluctance.fail()

    def _forget(self, ended: Sequence[Ended]) -> None:
        self._outbox.forget(ended)
        for each in ended:
            self._held.discard(each.held)
            each.held.lane.let_go(each.held)

    def _end_unwanted(self, *, is_told: bool) -> None:
        """End what somebody has cancelled."""
        for held in self._cancellations.asked_for(self._held, is_told=is_told):
            if held.lane.cancel(held):
                self._cancellations.heed(held)

    # ── Fatigue ────────────────────────────────────────────────────────────────

    def _ask_for_successor_if_tired(self) -> None:
        reason = "" if self._page.is_tired else self._fatigue.reason
        if reason:
            logger.info("%s asks for a successor: %s.", self._around.name, reason)
            self._page.show_tired()
            for lane in self._lanes:
                lane.looks_ahead = False
            self._around.wake_supervisor()
