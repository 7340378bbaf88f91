"""Rooms: the processes of isolated tasks as their worker knows them."""

import math
import os
import select
import socket
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from signal import SIGKILL, SIGTERM, Signals

from robust_queue.configuration import current
from robust_queue.exceptions import TaskCancelled, TaskTimeout
from robust_queue.policies import Policy
from robust_queue.processes import clock
from robust_queue.processes.held import Held
from robust_queue.stores.rows import Outcome

from .wire import Message, line_and_end, outcome_of

# The part of timeout_grace that a task has to notice that it is cancelled.
TO_NOTICE = 0.25
# Seconds that a process has to leave when its last task is over.
TO_LEAVE = 1.0
# Seconds after which a process that has nothing to do is let go.
IDLE = 60.0
MOST_OUTPUT = 64 * 1024
_PIECE = 64 * 1024
_AT_ONCE = 16
_SAFE = select.PIPE_BUF  # what a pipe takes as a whole if it takes anything


class Output:
    """What a task writes: passed on, and the latest of it kept."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self._kept = bytearray()

    def fileno(self) -> int:
        return self._read

    def close(self) -> None:
        # At once: its number may be somebody else's the next moment.
        read, self._read = self._read, -1
        os.close(read)

    def close_write(self) -> None:
        """It is in the hands of the process by now."""
        os.close(self.write)

    def collect(self) -> bool:
        """Read what is there, but not for ever; False if nobody writes any more."""
        if self._read < 0:
            return False
        with suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                piece = os.read(self._read, _PIECE)
                if not piece:
                    return False
                _pass_on(piece)
                self._kept += piece
                del self._kept[:-MOST_OUTPUT]
        return True

    def take(self) -> str:
        """The end of what the task has written."""
        self.collect()
        text = self._kept.decode("utf-8", "backslashreplace").replace("\x00", "\\x00")
        self._kept.clear()
        return text[-MOST_OUTPUT:]


def _grace() -> float:
    return current().timeout_grace.total_seconds()


def _pass_on(piece: bytes) -> None:
    # As if the task were run by this process. A log that is full, or that nobody reads,
    # harms no task: then it is only kept.
    for start in range(0, len(piece), _SAFE):
        with suppress(OSError):
            if not _log_has_room():
                return
            os.write(2, piece[start : start + _SAFE])


def _log_has_room() -> bool:
    """Can so much be written to the log without waiting for its reader?"""
    room = select.poll()
    room.register(2, select.POLLOUT)
    return bool(room.poll(0))


@dataclass(slots=True, eq=False, kw_only=True)
class Run:
    """A task in a room."""

    held: Held
    policy: Policy
    started_at: datetime
    # When its time is up, by the clock of trust.
    ends: float
    outcome: Outcome | None = None
    # The words of an exception that has stayed where it was raised.
    said: str = ""
    # It could not be begun, and may be somewhere else.
    is_unbegun: bool = False
    # Its worker leaves: nobody is to be told what has come of it.
    is_given_up: bool = False
    # Why it is ended from outside, and the signals that are yet to be sent.
    verdict: BaseException | None = None
    steps: deque[tuple[float, Signals]] = field(default_factory=deque)

    def time_out(self) -> None:
        """Its time is up."""
        verdict = TaskTimeout(f"The task took longer than {self.policy.timeout}.")
        self._end(verdict, term_in=0.0, kill_in=_grace() / 2)

    def cancel(self) -> None:
        """Somebody asks for its end. It has a while to notice."""
        verdict = TaskCancelled("The job was cancelled while it ran.")
        self._end(verdict, term_in=_grace() * TO_NOTICE, kill_in=_grace())

    def give_up(self, patience: float) -> None:
        """Its worker leaves, and nobody waits for longer than that."""
        self.is_given_up = True
        self._end(TaskCancelled(), term_in=0.0, kill_in=patience)

    def let_leave(self) -> None:
        """It is over. If its process does not leave by itself, it is made to."""
        self.steps.append((clock.now() + TO_LEAVE, SIGKILL))

    def _end(self, verdict: BaseException, *, term_in: float, kill_in: float) -> None:
        """See to its end: politely at first, and then not."""
        now = clock.now()
        self.verdict = verdict
        self.steps = deque([(now + term_in, SIGTERM), (now + kill_in, SIGKILL)])

    @property
    def next_step(self) -> float:
        """When something is to be done about it."""
        if self.steps:
            return self.steps[0][0]
        return self.ends if self.verdict is None and not self.outcome else math.inf


class Room:
    """A process in which one task runs at a time, or none."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.line, self._end = line_and_end()
        self.output = Output()
        self.pid = 0  # until it is born
        self.run: Run | None = None
        self.words = ""  # why it leaves, if it does by itself
        self.is_leaving = False
        self.idle_since = clock.now()

    @property
    def is_free(self) -> bool:
        return self.run is None and not self.is_leaving

    @property
    def next_step(self) -> float:
        """When something is to be done about it."""
        if self.run:
            return self.run.next_step
        return self.idle_since + IDLE if self.is_free else math.inf

    def note(self, run: Run, message: Message) -> None:
        """What the process tells of its task, and of itself."""
        told = message["outcome"]
        run.outcome = outcome_of(told) if told else None
        run.is_unbegun = told is None
        run.said = message["said"]
        self.pid = message["pid"]
        self.words = message["leaves"]

    @property
    def other_end(self) -> socket.socket:
        return self._end

    def hand_over(self) -> None:
        """What belongs to the process is its alone from now on."""
        self._end.close()
        self.output.close_write()

    def close(self) -> None:
        """There is nobody any more."""
        self.line.close()
        self.output.close()
