"""The crew: the lanes of a worker, and which of them a job belongs to."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from robust_queue import registry
from robust_queue.configuration import WorkerConfiguration
from robust_queue.stores.rows import Claim

from . import clock, isolation
from .capacity import Capacity, Count, whole
from .chains import emptied
from .coroutines import Coroutines, is_coroutine
from .held import Ended, Held
from .isolation.lane import Isolated
from .lanes import Duty, Lane
from .threads import Threads

# What coroutines that are cancelled at the end have to clean up.
GRACE = 0.5


class Crew:
    """Runs jobs in threads, as coroutines and in processes, as each asks for."""

    def __init__(self, configuration: WorkerConfiguration, duty: Duty) -> None:
        self._configuration = configuration
        self._duty = duty
        self.threads = Threads(configuration.threads, duty)
        self.coroutines = Coroutines(configuration.coroutines, duty)
        self.lanes: tuple[Lane, ...] = (self.threads, self.coroutines)
        self._expected = isolation.expected(configuration)
        self.isolated: Isolated | None = None
        if "process" in self._expected:
            self.isolated = Isolated(configuration, duty)
            self.lanes += (self.isolated,)
        self.capacity = Capacity(whole(configuration, self._expected))

    def prepare(self) -> None:
        if self.isolated:
            self.isolated.prepare()

    def start(self) -> None:
        self._expect_coroutines()
        self.threads.start()
        if self.isolated:
            self.isolated.start()

    def finish(self, timeout: float) -> None:
        self.threads.finish(timeout)
        self.coroutines.finish(timeout)
        if self.isolated:
            self.isolated.finish(timeout)

    def give_up(self) -> None:
        self.coroutines.give_up(within=GRACE)
        if self.isolated:
            self.isolated.give_up(within=GRACE)

    def go_on_with(self, wanted: WorkerConfiguration) -> WorkerConfiguration:
        """Have more or fewer threads; return what it has come to."""
        threads = self.threads.resize(wanted.threads)
        self._configuration = replace(wanted, threads=threads)
        self.capacity = Capacity(whole(self._configuration, self._expected))
        self._expect_coroutines()
        return self._configuration

    def _expect_coroutines(self) -> None:
        if any(map(is_coroutine, registry.discover().values())):
            self.capacity.expect_coroutines()

    # ── Room ───────────────────────────────────────────────────────────────────

    @property
    def room(self) -> Count:
        """For how many more jobs of each kind there is room."""
        return Count(*(lane.room for lane in self.lanes))

    @property
    def patience(self) -> float:
        """Seconds until somebody should look after one of the lanes."""
        return min(lane.patience for lane in self.lanes)

    @property
    def is_telling(self) -> bool:
        """Is somebody still to be told of an end?"""
        return any(lane.is_telling for lane in self.lanes)

    def look_ahead_no_more(self) -> None:
        for lane in self.lanes:
            lane.looks_ahead = False

    # ── Claims ─────────────────────────────────────────────────────────────────

    def sort_out(
        self, claims: Sequence[Claim], room: Count, *, limit: int
    ) -> tuple[list[Claim], list[Claim]]:
        """Those that there is room for, and those that others may have room for."""
        left = dict(zip(self.lanes, room, strict=False))
        came, fitting, surplus = Counter[Lane](), list[Claim](), list[Claim]()
        for lane in self.lanes:
            lane.prick_up_ears()
        for each in claims:
            lane = self._lane_of(each)
            came[lane] += 1
            (surplus if came[lane] > left[lane] else fitting).append(each)
        counts = Count(*(came[lane] for lane in self.lanes))
        self.capacity.learn(room, counts, limit=limit, now=clock.now())
        return fitting, surplus

    def reserve(self, claim: Claim, *, counts: bool = True) -> Held:
        """Take a claim on, in the lane that it belongs to."""
        return self._lane_of(claim).reserve(claim, counts=counts)

    def recall(self, *, everything: bool) -> list[Held]:
        """Take back what waits in vain, or whatever waits, with all that follows it."""
        back = [
            held
            for lane in self.lanes
            for held in (lane.recall() if everything else lane.recall_stale())
        ]
        return back + [behind for held in back for behind in emptied(held.chain)]

    def _lane_of(self, claim: Claim) -> Lane:
        if self.isolated and self.isolated.is_for(claim):
            return self.isolated
        has_loop = self._configuration.coroutines > 0
        if has_loop and is_coroutine(registry.find(claim.task_path)):
            return self.coroutines
        return self.threads

    # ── Ends ───────────────────────────────────────────────────────────────────

    def learn(self, ended: Sequence[Ended], *, turnaround: float) -> None:
        """These have ended since the last time; asking for more took so long."""
        for lane in self.lanes:
            lane.learn(_of(lane, ended), turnaround=turnaround)

    def write_down(self) -> None:
        """Keep the account of where tasks run. To be called before ends are settled."""
        if self.isolated:
            self.isolated.write_down()

    def announce(self, done: Sequence[Ended], recorded: Container[UUID]) -> None:
        """Tell the world of outcomes that were recorded."""
        for lane in self.lanes:
            lane.announce(_of(lane, done), recorded)


def _of(lane: Lane, ended: Iterable[Ended]) -> list[Ended]:
    return [each for each in ended if each.held.lane is lane]
