"""The worker: one thread talks to the queue, others run tasks.

The main thread claims, hands over to the lanes, and settles what they have done.
"""

import logging
from collections import deque
from collections.abc import Collection, Sequence
from uuid import UUID

from robust_queue.configuration import WorkerConfiguration
from robust_queue.lifecycle.claim import Claiming
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.settle import settle_and_claim
from robust_queue.stores import store_for
from robust_queue.stores.rows import Claim

from . import clock
from .actor import LONGEST_PAUSE, Actor, Surroundings
from .cancellations import Cancellations
from .capacity import Count
from .chains import Chains, next_of
from .crew import Crew
from .ears import Ears
from .fatigue import Fatigue
from .gates import Gates
from .held import Ended, Held
from .lanes import Duty
from .ledger import Ledger
from .outbox import Outbox
from .pace import Pace
from .patience import Patience
from .progress import Progress
from .strangers import Strangers
from .tuner import Tuner
from .turns import Turns, queues_left_out, shared_queues

logger = logging.getLogger("robust_queue")


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
        self._crew = Crew(configuration, self._duty())
        self._held: set[Held] = set()
        self._outbox = Outbox(around.wake)
        self._turnaround = 0.0
        self._left_out = queues_left_out(configuration)
        self._turns = Turns(shared_queues(database, configuration))
        self._progress = self._new_progress()
        # Grows where jobs cannot be begun: they would come around in no time.
        self._reluctance = Patience()
        self._is_stopping = False
        self._strangers = Strangers(database, around.identity)
        self._ears = Ears(
            configuration,
            left_out=self._left_out,
            database=database,
            wake=around.wake,
        )
        self._cancellations = Cancellations(database)
        self._chains = Chains(database, around.identity)
        self._ledger = Ledger(database, around.identity)
        self._gates = Gates(database, worker_id=around.name)
        self._tuner = Tuner(
            configuration,
            database=database,
            around=around,
            hears=self._ears.hear,
            tire=self._fatigue.be_exhausted,
        )
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
        self._crew.prepare()

    def start(self) -> None:
        self._crew.start()
        self._fatigue.begin()
        self._ears.start()

    def turn(self) -> float:
        is_news, is_cancelled, is_tuned = self._ears.take()
        if is_news:
            # Also plans a second look, which finds what this one may not.
            self._pace.quicken()
        self._ears.probe()
        self._go_on_with(self._tuner.wanted(is_told=is_tuned))
        self._take_back()
        self._end_unwanted(is_told=is_cancelled)
        self._crew.threads.nudge()
        self._ask_for_successor_if_tired()
        self._strangers.give_back_if_due(self._held)
        pause = self._outbox.patience or self._trade(is_news=is_news)
        self._ledger.write_if_due(is_last=self._is_stopping and not self._held)
        patience = self._cancellations.patience if self._held else LONGEST_PAUSE
        return min(pause, patience, self._chains.patience, self._crew.patience)

    def recover(self) -> None:
        # A claim may have succeeded although its reply was lost.
        self._strangers.expect()

    @property
    def is_busy(self) -> bool:
        return bool(self._held) or self._crew.is_telling

    def stop(self) -> None:
        self._is_stopping = True

    def finish(self, *, timeout: float) -> None:
        self._ears.stop(timeout)
        self._crew.finish(timeout)

    def give_up(self) -> None:
        self._ledger.hurry()
        self._crew.give_up()

    # ── Trade ──────────────────────────────────────────────────────────────────

    def _trade(self, *, is_news: bool = False) -> float:
        """Record what has ended and take on what there is room for, all at once.

        An error leaves what is not recorded for the next turn.
        """
        self._crew.learn(self._outbox.collect(), turnaround=self._turnaround)
        # Before they are settled: what is told of a job must not outlive it.
        self._crew.write_down()
        # Before anything is taken: it could be the very same job.
        self._give_back_unbegun()
        done = self._outbox.portion()
        room, begun = self._crew.room, clock.now()
        limit = self._limit(room, now=begun)
        claiming = self._claiming(limit, begun, is_news=is_news)
        outcomes = [each.performed.outcome for each in done if each.performed]
        recorded, claims = settle_and_claim(self.database, outcomes, claiming)
        self._turnaround = clock.now() - begun
        self._announce(done, recorded)
        if not limit:
            self._chains.hand_on(done)
            # The next turn comes when there is room, at the latest.
            left = self._crew.capacity.pause(room, now=clock.now())
            return self._reluctant_for or min(left, LONGEST_PAUSE)
        self._hand_over(self._gates.set_aside(claims), room, limit)
        # Behind that: what is claimed does not wait for those who are to be next.
        is_more = self._chains.hand_on(done, serves=self._serves)
        pause = self._pause_after(claims, claiming, begun)
        return 0.0 if is_more else pause

    def _claiming(self, limit: int, now: float, *, is_news: bool) -> Claiming:
        """What to ask for."""
        return Claiming(
            process_id=self._around.identity,
            queues=self._configuration.patterns,
            limit=limit,
            is_likely=self._pace.is_busy,
            start=self._progress.start(now),
            is_news=is_news,
            left_out=self._left_out,
            **self._turns.standing._asdict(),
        )

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

    def _limit(self, room: Count, *, now: float) -> int:
        """How many jobs to take on."""
        if self._reluctant_for:
            return 0
        limit = min(self._crew.capacity.limit(room, now=now), len(self._slots))
        # Whoever is to be replaced soon leaves the rest to others, until it is time.
        return int(min(limit, self._fatigue.tasks_left or limit))

    @property
    def _reluctant_for(self) -> float:
        """Seconds for which nothing new is to be begun."""
        # Least of all by a process that may have been taken for dead.
        if self._takes_nothing or not self._around.trusts():
            return LONGEST_PAUSE
        return self._reluctance.left

    @property
    def _takes_nothing(self) -> bool:
        return self._is_stopping or self._tuner.is_quiet

    # ── Claims ─────────────────────────────────────────────────────────────────

    def _hand_over(self, claims: Sequence[Claim], room: Count, limit: int) -> None:
        """Begin what there is room for; others may have room for the rest."""
        fitting, surplus = self._crew.sort_out(claims, room, limit=limit)
        free, limited = self._gates.with_rates(fitting)
        self._begin_all(free, kept=len(limited))
        self._turns.learn(claims, given_back=surplus)
        release(self.database, surplus)
        # Last of all: should the database go away, they are strangers to give back.
        self._begin_all(self._gates.within_rates(limited))

    def _begin_all(self, claims: Sequence[Claim], *, kept: int = 0) -> None:
        """Begin these with all that follows them; so many places are for others."""
        # Before any of them is begun: who ends has to know who is next.
        room = len(self._slots) - len(claims) - kept
        found = self._chains.followers(claims, room=room)
        behind = {head: self._gates.let_through(each) for head, each in found.items()}
        for each in claims:
            held = self._reserve(each)
            if each.job_id in behind:
                claimed = behind[each.job_id]
                followers = [self._reserve(it, counts=False) for it in claimed]
                self._chains.line_up(held, followers)
            self._begin(held)

    def _reserve(self, claimed: Claim, *, counts: bool = True) -> Held:
        held = self._crew.reserve(claimed, counts=counts)
        self._held.add(held)
        return held

    def _begin(self, held: Held) -> None:
        try:
            held.lane.run(held)
        except Exception:
            # No thread can be started, or no descriptor is left. It has not begun.
            logger.exception("Job %s could not be begun.", held.claim.job_id)
            self._note_end(Ended(held, None))

    # ── Ends ───────────────────────────────────────────────────────────────────

    def _note_end(self, ended: Ended) -> None:
        """Called by the lanes, in their threads."""
        follower = next_of(ended.held)
        if follower is None:
            is_urgent = ended.is_urgent or ended.held.lane.is_idle
            self._outbox.add(ended, is_urgent=is_urgent)
            return
        self._outbox.add(ended, is_urgent=ended.is_urgent)
        # Not before: of jobs that share a slot, one runs at a time.
        follower.since = clock.now()
        self._begin(follower)

    def _announce(self, done: Sequence[Ended], recorded: Collection[UUID]) -> None:
        self._ledger.add(done, recorded)
        self._fatigue.add(len(done))
        self._forget(done)
        if done:
            self._reluctance.succeed()
        self._crew.announce(done, recorded)
        self._cancellations.withdraw(done)

    def _take_back(self) -> None:
        """Take back what waits in vain: others may be free for it."""
        back = self._chains.recall_stale()
        back += self._crew.recall(everything=self._takes_nothing)
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
            self._crew.look_ahead_no_more()
            self._around.wake_supervisor()

    # ── Tuning ─────────────────────────────────────────────────────────────────

    def _go_on_with(self, wanted: WorkerConfiguration | None) -> None:
        """Serve other queues, or have more or fewer threads, if that is wanted."""
        if wanted is None:
            return
        self._configuration = self._crew.go_on_with(wanted)
        self._left_out = queues_left_out(self._configuration)
        self._turns = Turns(shared_queues(self.database, self._configuration))
        self._progress = self._new_progress()
        self._ears.serve(self._configuration, left_out=self._left_out)
        # What it serves now may have waited for it.
        self._pace.quicken()
        self._tuner.heed(self._configuration)

    def _new_progress(self) -> Progress:
        patterns, store = self._configuration.patterns, store_for(self.database)
        # Where some queues take turns there is no one order to have a place in.
        is_in_order = not self._turns.are_taken and store.can_start_anywhere(patterns)
        return Progress(is_followed=is_in_order)

    def _serves(self, queue: str) -> bool:
        """Does it take jobs of this queue?"""
        return queue not in self._left_out and self._configuration.serves(queue)
