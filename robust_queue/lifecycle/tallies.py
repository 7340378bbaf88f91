"""Tallies: what a process counts before it writes rollups."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from robust_queue.models.rollups import EVERY_QUEUE

from .durations import Durations

SPANS = (60, 900, 3600)
# Others are counted with all together only.
MOST_QUEUES = 500
# Seconds after its end for which a window is kept, should it be hard to write.
LATEST = 300


class Window(NamedTuple):
    """A stretch of time: seconds, and when it begins since the epoch."""

    span: int
    at: int

    @property
    def end(self) -> int:
        return self.at + self.span


class Entry(NamedTuple):
    """What a rollup is about."""

    window: Window
    queue_name: str


def windows(moment: float) -> list[Window]:
    """Those that a moment is part of, the shortest first."""
    return [Window(span, int(moment // span) * span) for span in SPANS]


@dataclass(slots=True)
class Tally:
    """How many ended in which way, and how long they took."""

    finished: int = 0
    failed: int = 0
    waits: Durations = field(default_factory=Durations)
    runs: Durations = field(default_factory=Durations)

    def add(self, other: "Tally") -> None:
        self.finished += other.finished
        self.failed += other.failed
        self.waits.update(other.waits)
        self.runs.update(other.runs)


class Tallies:
    """The tallies of one process by window and queue, and which are to be written.

    A window is kept until it is over, because all of it is written each time.
    """

    def __init__(self) -> None:
        self._pages: dict[Window, dict[str, Tally]] = {}
        self._unwritten: set[Entry] = set()

    def add(self, moment: float, found: Mapping[str, Tally]) -> None:
        """Enter what was counted at about that moment, by queue."""
        for window in windows(moment):
            page = self._pages.setdefault(window, {EVERY_QUEUE: Tally()})
            for name, tally in found.items():
                if name in page or len(page) <= MOST_QUEUES:
                    page.setdefault(name, Tally()).add(tally)
                    self._unwritten.add(Entry(window, name))

    @property
    def unwritten(self) -> dict[Entry, Tally]:
        """What has changed since it was written, in a fixed order."""
        return {
            each: self._pages[each.window][each.queue_name]
            for each in sorted(self._unwritten)
        }

    def note_written(self, entries: Collection[Entry]) -> None:
        self._unwritten.difference_update(entries)

    def forget(self, now: float) -> None:
        """Drop what is over and written, and what could not be written for too long."""
        waiting = {each.window for each in self._unwritten}
        for window in list(self._pages):
            is_wanted = window in waiting and window.end + LATEST > now
            if window.end <= now and not is_wanted:
                del self._pages[window]
        self._unwritten = {
            each for each in self._unwritten if each.window in self._pages
        }
