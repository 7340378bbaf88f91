"""The watchdog: names what blocks an event loop, and with it all of its coroutines."""

import asyncio
import linecache
import logging
import os
import sys
import sysconfig
import threading
import time
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import robust_queue
from robust_queue.context import CurrentJob

logger = logging.getLogger("robust_queue")

# Seconds for which the loop may be at one thing.
PATIENCE = 0.25
BETWEEN_LOOKS = 0.1
# Seconds for which the same place is not named again.
SILENCE = 60.0


class Watchdog(threading.Thread):
    """Looks whether the loop comes around, for as long as something is in flight."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        thread: threading.Thread,
        *,
        job_of: Callable[[Task[Any]], CurrentJob | None],
        in_flight: Callable[[], int],
    ) -> None:
        super().__init__(name="robust_queue watchdog", daemon=True)
        self._is_needed = threading.Event()
        self._loop = loop
        self._thread = thread
        self._job_of = job_of
        self._in_flight = in_flight
        self._is_over = threading.Event()
        self._told_at: dict[tuple[str, int], float] = {}

    def run(self) -> None:
        while not self._is_over.wait(BETWEEN_LOOKS):
            self._is_needed.wait()
            if not self._is_over.is_set():
                self._look()
                self._rest_if_idle()

    def need(self) -> None:
        """Something is in flight, and counted: look from now on."""
        if not self._is_needed.is_set():
            self._is_needed.set()

    def finish(self, timeout: float) -> None:
        """End the thread, before the loop is closed."""
        self._is_over.set()
        self._is_needed.set()
        self.join(timeout)

    def _rest_if_idle(self) -> None:
        if not self._in_flight():
            self._is_needed.clear()
            # One that has taken off in between has seen that the watchdog is awake.
            if self._in_flight() or self._is_over.is_set():
                self._is_needed.set()

    def _look(self) -> None:
        came_around = threading.Event()
        self._loop.call_soon_threadsafe(came_around.set)
        if came_around.wait(PATIENCE / 2):
            return
        suspect = asyncio.current_task(self._loop)
        if came_around.wait(PATIENCE / 2):
            return
        # Many that take a little while each do not block: they are only many.
        if asyncio.current_task(self._loop) is suspect:
            self._tell(suspect)
        while not (came_around.wait(PATIENCE) or self._is_over.is_set()):
            pass

    def _tell(self, suspect: Task[Any] | None) -> None:
        frame = self._place()
        if frame is None or self._is_told(frame):
            return
        job = self._job_of(suspect) if suspect else None
        logger.warning(
            "%s blocks the event loop%s: %s%s. Use await asyncio.sleep(), an async "
            "client, or asyncio.to_thread().",
            job.task if job else "Something",
            _beside(self._in_flight() - 1),
            _told(frame),
            f" (job {job.id})" if job else "",
        )

    def _place(self) -> FrameType | None:
        """Where the user's code is, if it is the user's code that runs."""
        innermost = sys._current_frames().get(self._thread.ident or 0)
        frames = [each for each in _outwards(innermost) if not _is_ours(each)]
        return next(
            (each for each in frames if not _is_installed(each)),
            next(iter(frames), None),
        )

    def _is_told(self, frame: FrameType) -> bool:
        """Has this place been named just now? It counts as named from now on."""
        place = frame.f_code.co_filename, frame.f_lineno
        now = time.monotonic()
        is_told = now - self._told_at.get(place, -SILENCE) < SILENCE
        if not is_told:
            self._told_at[place] = now
        return is_told


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_ours(frame: FrameType) -> bool:
    """Is this Python itself, or the event loop around the coroutines?"""
    file = frame.f_code.co_filename
    if _is_installed(frame):
        return file.startswith(_OWN)
    return file.startswith(("<", *_STANDARD, *_OWN))


def _is_installed(frame: FrameType) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(
        Path(frame.f_code.co_filename).parts
    )


_STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
_OWN = (os.path.dirname(robust_queue.__file__) + os.sep,)  # noqa: PTH120


def _beside(others: int) -> str:
    if others < 1:
        return ""
    return f", and with it {others} other coroutine{'s' if others > 1 else ''}"


def _told(frame: FrameType) -> str:
    file, line = Path(frame.f_code.co_filename), frame.f_lineno
    here = Path.cwd()
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    text = linecache.getline(str(file), line).strip()
    return f"{shown}:{line} in {frame.f_code.co_name}: {text}"
