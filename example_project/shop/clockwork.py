"""Two schedulers and one bell: it strikes once a second, whoever is killed."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from robust_queue import schedule_recurring, unschedule_recurring
from robust_queue.models import RecurringExecution

from .supervising import running
from .tasks import strike_bell

KEY = "bell"
STRIKES = 6
LONGEST = 30.0
SECOND = timedelta(seconds=1)


@dataclass
class Watch:
    """What there is to be told, and what was told already."""

    told: set[datetime] = field(default_factory=set)

    def news(self) -> Iterator[str]:
        for entry in _entries():
            if entry.run_at not in self.told:
                self.told.add(entry.run_at)
                yield f"{entry.run_at:%H:%M:%S}  {_in_words(entry)}"


def let_it_strike(folder: Path, tell: Callable[[str], None]) -> dict[str, bool]:
    """Have it strike for a while; return what must be true then, in plain words."""
    schedule_recurring(KEY, strike_bell, schedule="every second", overlap="queue")
    watch, is_killed, ends = Watch(), False, time.monotonic() + LONGEST
    with (
        running("--only", "scheduler", log=folder / "one.log") as one,
        running("--only", "scheduler", log=folder / "two.log"),
    ):
        while len(watch.told) < STRIKES and time.monotonic() < ends:
            for line in watch.news():
                tell(line)
            if len(watch.told) >= STRIKES // 2 and not is_killed:
                is_killed = one.kill_one("Scheduler")
                if is_killed:
                    tell("          -- a scheduler is killed --")
            time.sleep(0.05)
    unschedule_recurring(KEY)
    return {
        "The bell struck once for every second, although a scheduler was killed.": (
            is_killed and len(watch.told) >= STRIKES and _is_without_gap()
        )
    }


def _entries() -> list[RecurringExecution]:
    entries = RecurringExecution.objects.filter(task_key=KEY)
    return list(entries.order_by("run_at"))


def _in_words(entry: RecurringExecution) -> str:
    if entry.skipped_until is None:
        return "Ding"
    return f"silent until {entry.skipped_until:%H:%M:%S}: {entry.reason}"


def _is_without_gap() -> bool:
    """Does every entry begin where the one before it ended?"""
    expected = None
    for entry in _entries():
        if expected is not None and entry.run_at != expected:
            return False
        expected = (entry.skipped_until or entry.run_at) + SECOND
    return True
