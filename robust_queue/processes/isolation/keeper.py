"""The keeper: the thread that looks after rooms.

Everything about rooms is done by this one thread: it hands tasks over, collects what
they write and what comes of them, and ends those whose time is up.
"""

import math
import os
import selectors
import signal
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, TypeAlias

from robust_queue.processes import clock
from robust_queue.processes.actor import LONGEST_PAUSE
from robust_queue.processes.held import Held
from robust_queue.processes.wakeup import Wakeup
from robust_queue.reports import report

from .nursery import Nursery
from .rooms import Output, Room, Run
from .wire import Line, Message, plain_claim

Errand: TypeAlias = Callable[[], None]


class Keeper(threading.Thread):
    """Keeps as many rooms as are needed at a time."""

    def __init__(
        self,
        nursery: Nursery,
        *,
        next_run: Callable[[], Run | None],
        on_begin: Callable[[Run, Room], None],
        on_end: Callable[[Run, Room, int | None], None],
        on_failure: Callable[[Run], None],
        on_loss: Errand,
    ) -> None:
        super().__init__(name="robust_queue keeper", daemon=True)
        self._nursery: Nursery | None = nursery
        self._next_run = next_run
        self._on_begin = on_begin
        self._on_end = on_end
        self._on_failure = on_failure
        self._on_loss = on_loss
        self._numbers = count(1)
        self._rooms: dict[int, Room] = {}
        self._errands: deque[Errand] = deque()
        self._wakeup = Wakeup()
        self._selector = selectors.DefaultSelector()
        self._is_over = False
        self._is_empty = threading.Event()

    # ── From other threads ─────────────────────────────────────────────────────

    def call(self) -> None:
        """There is something to run."""
        self._wakeup.set()

    def cancel(self, held: Held) -> None:
        """End the task of this claim, if it runs."""
        self._errands.append(partial(self._cancel, held))
        self.call()

    def give_up(self, *, within: float) -> None:
        """End everything; nobody is told what has come of it."""
        self._errands.append(partial(self._give_up, within / 2))
        self.call()
        self._is_empty.wait(within)

    def finish(self, timeout: float) -> None:
        self._is_over = True
        self.call()
        if self.is_alive():
            self.join(timeout)

    # ── In the thread itself ───────────────────────────────────────────────────

    def run(self) -> None:
        self._selector.register(self._wakeup.fileno(), selectors.EVENT_READ)
        if self._nursery:
            self._listen(self._nursery.line, self._hear_nursery)
        while not self._is_over:
            try:
                self._turn()
            except BaseException as error:
                report(error, "isolated tasks were looked after")
        for room in list(self._rooms.values()):
            self._dismiss(room)

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._patience()):
            if key.data is not None:
                key.data()
        self._wakeup.drain()
        while self._errands:
            self._errands.popleft()()
        self._begin_waiting()
        self._press()

    def _listen(self, source: Line | Output, action: Errand) -> None:
        self._selector.register(source, selectors.EVENT_READ, action)

    def _ignore(self, source: Line | Output) -> None:
        with suppress(KeyError, ValueError):  # it may be closed, or ignored already
            self._selector.unregister(source)

    def _patience(self) -> float:
        nexts = [each.next_step for each in self._rooms.values()]
        left = min(nexts, default=math.inf) - clock.now()
        return min(max(left, 0.0), LONGEST_PAUSE)

    # ── Beginnings ─────────────────────────────────────────────────────────────

    def _begin_waiting(self) -> None:
        while self._nursery and (run := self._next_run()) is not None:
            try:
                room = self._free_room() or self._new_room(self._nursery)
            except OSError as error:
                # No descriptor is left, or the nursery is gone. It has not begun.
                report(error, "a process was to be born for a task")
                self._on_failure(run)
            else:
                self._begin(run, room)

    def _free_room(self) -> Room | None:
        return next((each for each in self._rooms.values() if each.is_free), None)

    def _new_room(self, nursery: Nursery) -> Room:
        room = Room(next(self._numbers))
        try:
            nursery.bear(room.number, room.other_end, room.output.write)
        except OSError:
            room.close()
            raise
        finally:
            room.hand_over()
        self._rooms[room.number] = room
        self._listen(room.line, partial(self._hear, room))
        self._listen(room.output, partial(self._collect, room))
        return room

    def _begin(self, run: Run, room: Room) -> None:
        room.run = run
        self._on_begin(run, room)
        self._post(room, claim=plain_claim(run.held.claim))

    def _post(self, room: Room, **message: Any) -> None:
        # Whoever is gone already is told of by the nursery.
        with suppress(OSError):
            room.line.post(**message)
            if room.line.has_unsent:
                self._watch(room, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def _watch(self, room: Room, events: int) -> None:
        self._selector.modify(room.line, events, partial(self._hear, room))

    # ── News ───────────────────────────────────────────────────────────────────

    def _hear(self, room: Room) -> None:
        try:
            if room.line.has_unsent:
                room.line.flush()
                if not room.line.has_unsent:
                    self._watch(room, selectors.EVENT_READ)
            for message in room.line.arrived():
                self._learn(room, message)
        except (EOFError, OSError):
            # It has left, or is about to. How, the nursery will tell.
            self._ignore(room.line)
            room.is_leaving = True

    def _learn(self, room: Room, message: Message) -> None:
        run = room.run
        if run is None:
            return
        room.note(run, message)
        if room.words or run.verdict:
            # What it has left behind is ended before the end is told.
            run.let_leave()
            room.is_leaving = True
            self._hang_up(room)
        else:
            self._conclude(room, None)

    def _collect(self, room: Room) -> None:
        if not room.output.collect():
            self._ignore(room.output)

    def _hang_up(self, room: Room) -> None:
        """Nothing more is said: who waits for the next task leaves."""
        self._ignore(room.line)
        room.line.close()

    def _conclude(self, room: Room, code: int | None) -> None:
        run, room.run = room.run, None
        room.idle_since = clock.now()
        if run is not None:
            self._on_end(run, room, code)

    # ── News of the nursery ────────────────────────────────────────────────────

    def _hear_nursery(self) -> None:
        if self._nursery is None:
            return
        try:
            for message in self._nursery.line.arrived():
                self._learn_from_nursery(message)
        except (EOFError, OSError):
            self._lose_nursery(self._nursery)

    def _learn_from_nursery(self, message: Message) -> None:
        match message:
            case {"born": number, "pid": pid}:
                self._rooms[number].pid = pid
            case {"stillborn": number}:
                room = self._rooms[number]
                if room.run:
                    room.run.is_unbegun = True
                self._part_with(room, None)
            case {"gone": number, "code": code}:
                self._part_with(self._rooms[number], code)

    def _part_with(self, room: Room, code: int | None) -> None:
        del self._rooms[room.number]
        room.is_leaving = True
        self._read_the_rest(room)
        self._conclude(room, code)
        self._dismiss(room)
        if not self._rooms:
            self._is_empty.set()

    def _read_the_rest(self, room: Room) -> None:
        # What it has said at last may not have been heard yet.
        if room.run and not room.run.outcome:
            with suppress(EOFError, OSError, ValueError):
                for message in room.line.arrived():
                    room.note(room.run, message)

    def _dismiss(self, room: Room) -> None:
        self._ignore(room.line)
        self._ignore(room.output)
        room.close()

    def _lose_nursery(self, nursery: Nursery) -> None:
        """It has died, and with it all of its own. Nobody can be born any more."""
        self._nursery = None
        self._selector.unregister(nursery.line)
        for room in list(self._rooms.values()):
            if room.pid:
                # What they have left behind, as far as it can be found.
                with suppress(OSError):
                    os.killpg(room.pid, signal.SIGKILL)
            self._part_with(room, None)
        self._on_loss()

    # ── Ends from outside ──────────────────────────────────────────────────────

    def _press(self) -> None:
        now = clock.now()
        for room in list(self._rooms.values()):
            if room.run and room.run.next_step <= now:
                self._take_step(room, room.run)
            elif room.next_step <= now:
                room.is_leaving = True
                self._hang_up(room)

    def _take_step(self, room: Room, run: Run) -> None:
        if run.outcome is None and run.verdict is None and run.ends <= clock.now():
            run.time_out()
        while run.steps and run.steps[0][0] <= clock.now():
            _, number = run.steps.popleft()
            self._post(room, end=True)
            self._signal(room, number)

    def _cancel(self, held: Held) -> None:
        for room in self._rooms.values():
            if room.run and room.run.held is held and not room.run.verdict:
                room.run.cancel()
                self._post(room, cancel=True)
                self._signal(room, signal.SIGURG, to_group=False)

    def _give_up(self, patience: float) -> None:
        for room in self._rooms.values():
            if room.run:
                room.run.give_up(patience)
        if not any(room.run for room in self._rooms.values()):
            self._is_empty.set()

    def _signal(self, room: Room, number: int, *, to_group: bool = True) -> None:
        if self._nursery:
            with suppress(OSError):
                self._nursery.signal(room.number, number, to_group=to_group)
