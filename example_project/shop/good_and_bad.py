"""A good and a bad worker side by side: the bad one dies again and again.

Whatever it was doing is done by somebody else, and every parcel is packed in the end.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from robust_queue import enqueue_all
from robust_queue.models import FinishedExecution, Job

from .supervising import Supervisor, running
from .tasks import pack_parcel

PARCELS = 40
LONGEST = 60.0
PAUSE_BETWEEN_KILLS = (0.6, 1.4)


@dataclass(slots=True)
class Race:
    """What is going on, and what has been seen of it."""

    good: Supervisor
    bad: Supervisor
    parcels: set[str]
    # By the name of a worker: whose it is. A dead one has no row any more.
    owners: dict[str, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    kills: int = 0

    @property
    def is_over(self) -> bool:
        return self.told == self.parcels

    def look_around(self) -> None:
        for owner, supervisor in (("Good", self.good), ("Bad", self.bad)):
            for worker in supervisor.workers():
                self.owners[worker.name] = owner

    def news(self) -> Iterator[str]:
        """What has been packed since the last time, and by whom."""
        packed = FinishedExecution.objects.filter(job_id__in=self.parcels - self.told)
        for row in packed.order_by("finished_at"):
            self.told.add(str(row.job_id))
            number = row.result.partition("parcel ")[2].rstrip('"')
            again = f", attempt {row.attempts}" if row.attempts > 1 else ""
            owner = self.owners.get(row.worker_id, "?")
            yield f"{owner:>4} worker: parcel {number}{again}"


def pack_everything(folder: Path, tell: Callable[[str], None]) -> dict[str, bool]:
    """Run the race, and return what must be true at its end, in plain words."""
    results = enqueue_all(pack_parcel.bind(n) for n in range(1, PARCELS + 1))
    with (
        running(log=folder / "good.log") as good,
        running(log=folder / "bad.log") as bad,
    ):
        race = Race(good, bad, {result.id for result in results})
        _watch(race, tell)
    return _judge(race, tell)


def _judge(race: Race, tell: Callable[[str], None]) -> dict[str, bool]:
    packed = FinishedExecution.objects.filter(job_id__in=race.parcels)
    again = packed.filter(attempts__gt=1).count()
    tell(f"The bad worker was killed {race.kills} times; {again} parcels ran again.")
    jobs = Job.objects.filter(pk__in=race.parcels)
    return {
        f"All {PARCELS} parcels were packed, each of them once.": (
            jobs.finished().count() == packed.count() == PARCELS
        ),
        "The bad worker really was killed.": race.kills > 0,
    }


def _watch(race: Race, tell: Callable[[str], None]) -> None:
    end = time.monotonic() + LONGEST
    next_kill = time.monotonic() + PAUSE_BETWEEN_KILLS[1]
    while not race.is_over and time.monotonic() < end:
        race.look_around()
        for line in race.news():
            tell(line)
        if time.monotonic() >= next_kill and race.bad.kill_one("Worker"):
            race.kills += 1
            tell("          -- the bad worker is killed --")
            next_kill = time.monotonic() + random.uniform(*PAUSE_BETWEEN_KILLS)  # noqa: S311
        time.sleep(0.05)
