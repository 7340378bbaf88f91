"""Chains: jobs of one key that a worker runs one after the other, in one slot.

A key that many jobs wait for would otherwise cost each of them three round trips.
Whoever has its slot takes those along that are next, if they are short: for a moment
nobody else has a chance, which nobody who waits for that key has anyway.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from uuid import UUID, uuid4

from django.utils import timezone

from robust_queue.flow.keys import SEPARATOR
from robust_queue.lifecycle.admit import promote_after
from robust_queue.lifecycle.wake import wake
from robust_queue.stores import store_for
from robust_queue.stores.rows import Claim

from . import clock
from .foresight import STALE
from .held import Ended, Held, first_of

LONGEST = 25
# Seconds that all of a chain may take, going by how long its task took before.
SPAN = 0.05
MOST_NAMES = 1000  # of tasks and of keys; stored text may name any number of them
_OF_LATEST = 0.2  # how much the latest duration counts


class Chains:
    """What a worker knows of its chains, and of the keys that make some worthwhile."""

    def __init__(self, database: str, process_id: UUID) -> None:
        self._database = database
        self._process_id = process_id
        self._durations: dict[str, float] = {}
        self._in_demand: set[str] = set()
        # What waits to be run behind others, and since when.
        self._lines: list[tuple[float, deque[Held]]] = []

    def hand_on(
        self, done: Sequence[Ended], *, serves: Callable[[str], bool] | None = None
    ) -> bool:
        """Let others have the slots of what has ended.

        Returns whether all of them are of queues that this worker serves, and will look
        at next. If it has no room, or serves others, workers are told.
        """
        ended = [each for each in done if each.held.claim.concurrency_key]
        if not ended:
            return False
        claims = [each.held.claim for each in ended]
        promoted = promote_after(self._database, claims, is_told=False)
        self._learn(ended, are_others_next=bool(promoted))
        queues = set(promoted.values())
        is_ours = serves is not None and all(map(serves, queues))
        if promoted and not is_ours:
            wake(self._database, queues)
        return bool(promoted) and is_ours

    def _learn(self, ended: Iterable[Ended], *, are_others_next: bool) -> None:
        for each in ended:
            claim = each.held.claim
            if each.performed:
                outcome = each.performed.outcome
                took = outcome.finished_at - outcome.started_at
                self._learn_duration(claim.task_path, took.total_seconds())
            if are_others_next and len(self._in_demand) < MOST_NAMES:
                self._in_demand.add(claim.concurrency_key)

    def _learn_duration(self, path: str, latest: float) -> None:
        known = self._durations.get(path, latest)
        if len(self._durations) > MOST_NAMES:
            self._durations.clear()
        self._durations[path] = known + _OF_LATEST * (latest - known)

    def followers(
        self, claims: Sequence[Claim], *, room: int
    ) -> dict[UUID, list[Claim]]:
        """Claim what may be run behind these; there are places for so many."""
        if not self._in_demand:
            return {}
        heads = {each.concurrency_key: each for each in claims if self._is_worth(each)}
        lengths = [self._length(each) for each in heads.values()]
        most = min([*lengths, room // max(len(heads), 1)])
        if not heads or most < 1:
            return {}
        found = store_for(self._database).follow(
            list(heads.values()),
            most=most,
            process_id=self._process_id,
            token=uuid4(),
            now=timezone.now(),
        )
        waited_for = {key for key, head in heads.items() if head.job_id in found}
        self._in_demand -= heads.keys() - waited_for
        return found

    def _is_worth(self, claim: Claim) -> bool:
        # Who has several keys would keep the others for as long.
        key = claim.concurrency_key
        return key in self._in_demand and SEPARATOR not in key

    def _length(self, head: Claim) -> int:
        """How many to run behind it."""
        took = self._durations.get(head.task_path, SPAN)
        return min(int(SPAN / max(took, 0.0001)), LONGEST) - 1

    # ── Lines ──────────────────────────────────────────────────────────────────

    def line_up(self, head: Held, followers: Sequence[Held]) -> None:
        """Have these run behind the first. To be called before that one is begun."""
        line = deque(followers)
        for each in (head, *followers):
            each.chain = line
        self._lines.append((clock.now(), line))

    @property
    def patience(self) -> float:
        """Seconds until one of the lines has to be given up."""
        self._lines = [each for each in self._lines if each[1]]
        since = min((each[0] for each in self._lines), default=float("inf"))
        return since + STALE - clock.now()

    def recall_stale(self) -> list[Held]:
        """Take back what waits for somebody who takes long."""
        if self.patience > 0:
            return []
        late = clock.now() - STALE
        return [
            each
            for since, line in self._lines
            if since <= late
            for each in emptied(line)
        ]


def next_of(held: Held) -> Held | None:
    """Whose turn it is when this one has ended; nobody else will be told."""
    return first_of(held.chain) if held.chain else None


def emptied(line: deque[Held] | None) -> list[Held]:
    """Take everybody out of a line, the last first; some may go by themselves."""
    taken = list[Held]()
    while line:
        try:
            taken.append(line.pop())
        except IndexError:
            break
    return taken
