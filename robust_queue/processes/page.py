"""The page: what a child does, in memory that outlives it.

Anonymous memory shared by a supervisor and one child. The child writes signs of life,
and what it does with each claim. Claims are read after the child has ended, so neither
waits for the other. The stage of one is written last and cleared first: a child killed
in the middle of a write leaves the stage before it.
"""

import math
import mmap
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from uuid import UUID

from robust_queue.stores.rows import Claim, Outcome

from . import clock
from .packing import packed, unpacked

_MOMENT = struct.Struct("=d")
_BEAT, _LIFE, _TURN = 0, 8, 16  # where moments are kept, and below what is true or not
_UP, _LEAVING, _BURIED, _RELIEVED, _TIRED, _CALLING = 24, 25, 26, 27, 28, 29
# State, runs again, length, start, end of its time, job, token.
_RECORD = struct.Struct("=B?xxIdd16s16s")
_ENDS = 16  # where in it the end of its time is
_START = struct.Struct("=?xxIdd")  # that part of it which is written at the start
# A text and its length, which is written last: what an operator has changed.
_TUNING = 32
_LENGTH = struct.Struct("=I")
_HEADER_SIZE = 16 * 1024
LEAST_SLOT = 64 * 1024


class Stage(IntEnum):
    """How far a claim got."""

    FREE = 0
    RESERVED = 1
    STARTED = 2
    DONE = 3


@dataclass(frozen=True, slots=True)
class Record:
    """A claim as the page tells of it."""

    stage: Stage
    job_id: UUID
    token: UUID
    started_at: datetime
    # When its time is up, by the clock of trust; never if it is not limited.
    ends: float
    runs_again: bool
    outcome: Outcome | None = None


class Page:
    """One record per claim that a child may hold at a time, and its signs of life."""

    def __init__(self, slots: int, *, slot_size: int = LEAST_SLOT) -> None:
        self.slots = range(slots)
        try:
            self._memory = _shared(_HEADER_SIZE + slots * slot_size)
        except OSError:
            # Where the system promises no more memory than it has.
            slot_size = min(slot_size, LEAST_SLOT)
            self._memory = _shared(_HEADER_SIZE + slots * slot_size)
        self._slot_size = slot_size

    # ── Signs of life ──────────────────────────────────────────────────────────

    def show_beat(self, begun: float) -> None:
        """A heartbeat that was begun at that moment has reached the database."""
        self._stamp(_BEAT, begun)
        self.show_life()

    def show_life(self) -> None:
        """The child is not stuck, whether or not it reaches the database."""
        self._stamp(_LIFE, clock.now())

    def show_turn(self) -> None:
        """The main thread of the child has come around."""
        self._stamp(_TURN, clock.now())

    def show_up(self) -> None:
        """The child has booted."""
        self._memory[_UP] = True

    def show_leaving(self) -> None:
        """The child leaves because it was asked to, whatever still runs in it."""
        self._memory[_LEAVING] = True

    def show_buried(self) -> None:
        """The claims of the child, which is dead, have been settled."""
        self._memory[_BURIED] = True

    def show_relieved(self, *, is_relieved: bool = True) -> None:
        """Told by the supervisor: tasks may take as long as they like to finish."""
        self._memory[_RELIEVED] = is_relieved

    def show_tired(self) -> None:
        """The child asks to be replaced; it works on until its successor is up."""
        self._memory[_TIRED] = True

    def show_call(self, *, is_calling: bool = True) -> None:
        """The child has read that somebody wants something of its supervisor.

        Taken back by the supervisor before it looks for itself: a call that comes while
        it looks makes it look again.
        """
        self._memory[_CALLING] = is_calling

    def show_tuning(self, text: str) -> None:
        """The child goes on with this; who takes its place is to do the same."""
        kept, begin = text.encode(), _TUNING + _LENGTH.size
        _LENGTH.pack_into(self._memory, _TUNING, 0)
        if begin + len(kept) <= _HEADER_SIZE:
            self._memory[begin : begin + len(kept)] = kept
            _LENGTH.pack_into(self._memory, _TUNING, len(kept))

    @property
    def tuning(self) -> str:
        (length,) = _LENGTH.unpack_from(self._memory, _TUNING)
        begin = _TUNING + _LENGTH.size
        return self._memory[begin : begin + length].decode()

    @property
    def last_beat(self) -> float:
        return self._moment(_BEAT)

    @property
    def last_sign_of_life(self) -> float:
        return self._moment(_LIFE)

    @property
    def last_turn(self) -> float:
        return self._moment(_TURN)

    @property
    def is_up(self) -> bool:
        return bool(self._memory[_UP])

    @property
    def is_leaving(self) -> bool:
        return bool(self._memory[_LEAVING])

    @property
    def is_tired(self) -> bool:
        return bool(self._memory[_TIRED])

    @property
    def is_calling(self) -> bool:
        return bool(self._memory[_CALLING])

    @property
    def is_buried(self) -> bool:
        return bool(self._memory[_BURIED])

    @property
    def is_relieved(self) -> bool:
        return bool(self._memory[_RELIEVED])

    def _stamp(self, place: int, moment: float) -> None:
        # In one piece: the supervisor reads these while the child lives.
        self._memory[place : place + _MOMENT.size] = _MOMENT.pack(moment)

    def _moment(self, place: int) -> float:
        (moment,) = _MOMENT.unpack_from(self._memory, place)
        return float(moment)

    # ── Claims ─────────────────────────────────────────────────────────────────

    def reserve(self, slot: int, claim: Claim) -> None:
        """The claim is held, its task has not begun."""
        ids = claim.job_id.bytes, claim.token.bytes
        offset = self._offset(slot)
        _RECORD.pack_into(self._memory, offset, Stage.FREE, False, 0, 0.0, 0.0, *ids)
        self._memory[offset] = Stage.RESERVED

    def start(self, slot: int, *, runs_again: bool, ends: float = math.inf) -> None:
        """The task begins. Should the process die now, would it be run again?"""
        offset = self._offset(slot)
        _START.pack_into(self._memory, offset + 1, runs_again, 0, time.time(), ends)
        self._set_stage(slot, Stage.STARTED)

    def finish(self, slot: int, outcome: Outcome) -> bool:
        """The task is over. An outcome too large for the page stays a started task.

        Returns whether it was written down.
        """
        kept = packed(outcome)
        if len(kept) > self._slot_size - _RECORD.size:
            # But not one that is late: nobody has to end this process for it.
            self._write(slot, _ENDS, _MOMENT.pack(math.inf))
            return False
        self._write(slot, _RECORD.size, kept)
        struct.pack_into("=I", self._memory, self._offset(slot) + 4, len(kept))
        self._set_stage(slot, Stage.DONE)
        return True

    def clear(self, slot: int) -> None:
        """The claim is settled or given back."""
        self._set_stage(slot, Stage.FREE)

    def records(self) -> Iterator[Record]:
        """What the child held when it ended; to be read after its end only."""
        for slot in self.slots:
            record = self._record(slot)
            if record.stage is not Stage.FREE:
                yield record

    def runs_what_runs_again(self) -> bool:
        """Is a task under way that would be run again if this process died?"""
        return any(
            stage == Stage.STARTED and runs_again
            for stage, runs_again, *_ in map(self._head, self.slots)
        )

    def has_overdue(self, grace: float) -> bool:
        """Is a task under way whose time has been up for that long?"""
        latest = clock.now() - grace
        return any(
            stage == Stage.STARTED and ends < latest
            for stage, _, _, _, ends, *_ in map(self._head, self.slots)
        )

    def has_running(self) -> bool:
        """Is any task under way?"""
        return any(self._head(slot)[0] == Stage.STARTED for slot in self.slots)

    def _head(self, slot: int) -> tuple[int, bool, int, float, float, bytes, bytes]:
        return _RECORD.unpack_from(self._memory, self._offset(slot))

    def _record(self, slot: int) -> Record:
        stage, runs_again, length, start, ends, job, token = self._head(slot)
        return Record(
            stage=Stage(stage),
            job_id=UUID(bytes=job),
            token=UUID(bytes=token),
            started_at=datetime.fromtimestamp(start, UTC),
            ends=ends,
            runs_again=runs_again,
            outcome=(
                self._outcome(
                    slot, length, job_id=UUID(bytes=job), token=UUID(bytes=token)
                )
                if stage == Stage.DONE
                else None
            ),
        )

    def _outcome(self, slot: int, length: int, **ids: UUID) -> Outcome:
        begin = self._offset(slot) + _RECORD.size
        return unpacked(self._memory[begin : begin + length], **ids)

    def _write(self, slot: int, place: int, data: bytes) -> None:
        begin = self._offset(slot) + place
        self._memory[begin : begin + len(data)] = data

    def _set_stage(self, slot: int, stage: Stage) -> None:
        self._memory[self._offset(slot)] = stage

    def _offset(self, slot: int) -> int:
        return _HEADER_SIZE + slot * self._slot_size


def _shared(size: int) -> mmap.mmap:
    """Memory shared with those who are forked. Much of it costs nothing.

    What nobody has written to is not there, and need not be promised either.
    """
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(-1, size, flags=flags)
