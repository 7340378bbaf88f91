"""The room in which workers outside wait, and from which they are sent to look.

On PostgreSQL one listener hears for all who wait in a process, while somebody does. Of
those who serve a queue that has news one looks, and the next if that one has found
something: if all of them looked, most would look in vain.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from robust_queue.configuration import WorkerConfiguration
from robust_queue.lifecycle.enlist import valid_for
from robust_queue.processes.actor import jittered
from robust_queue.processes.listener import Listener, can_listen
from robust_queue.processes.pace import RARELY, SECOND_LOOK

from .own import Own, later

# Seconds between two looks of somebody who hears nothing, at first and at last.
FIRST_LOOK, LAST_LOOK = 0.1, 1.0
# Seconds for which the listener stays when nobody waits: who was told of nothing asks
# again.
LINGERS_FOR = 60.0


class Seat:
    """Somebody who waits, and what they have been sent to look for."""

    def __init__(self, queues: Sequence[str], room: "Room") -> None:
        self._served = WorkerConfiguration(queues=tuple(queues)) if queues else None
        self._room = room
        self._pause = FIRST_LOOK
        self._call = threading.Event()
        # Queues that it is to look into, and those of the look under way.
        self._errands = set[str]()
        self._under_way = set[str]()

    def rest(self, longest: float) -> None:
        """Wait until it is sent to look, or it is time for that anyway."""
        self._under_way.clear()
        self._call.wait(min(jittered(self._pause), longest))
        with self._room.lock:
            # Whoever sends news keeps silent for a moment then: it looks twice.
            slower = min(2 * self._pause, self._room.longest_pause)
            self._pause = SECOND_LOOK if self._call.is_set() else slower
            self._under_way, self._errands = self._errands, set()
            self._call.clear()

    def serves(self, queue: str) -> bool:
        return self._served is not None and self._served.serves(queue)

    # ── In the room, by whoever has locked it ──────────────────────────────────

    @property
    def is_called(self) -> bool:
        return self._call.is_set()

    def call(self, *queues: str) -> None:
        """Have it look, into these queues if any are named."""
        self._errands.update(queues)
        self._call.set()

    @property
    def errands(self) -> Collection[str]:
        """What it was sent for and has not looked for in vain."""
        return self._errands | self._under_way


class Room:
    """All who wait in this process for jobs of one database."""

    def __init__(self, database: str) -> None:
        self._database = database
        self.lock = threading.Lock()
        self._probing = threading.Lock()
        # Who came first is sent first.
        self._seats: list[Seat] = []
        self._listener: Listener | None = None
        self._is_emptying = False

    @property
    def longest_pause(self) -> float:
        """Seconds between two looks, at last; many where news is heard."""
        listener = self._listener
        if listener is None or not listener.hears:
            return LAST_LOOK
        return max(LAST_LOOK, min(RARELY, valid_for() / 10))

    @contextmanager
    def seat(self, queues: Sequence[str]) -> Iterator[Seat]:
        """A seat for somebody who serves these queues."""
        seat = Seat(queues, self)
        with self.lock:
            self._seats.append(seat)
        try:
            with self.lock:
                self._listen()
            yield seat
        finally:
            self._leave(seat)

    def probe(self) -> None:
        """See from time to time whether anything can be heard at all.

        For all of them by one who waits, on a connection that is not the listener's.
        """
        listener = self._listener
        if listener is not None and self._probing.acquire(blocking=False):
            try:
                listener.probe()
            finally:
                self._probing.release()

    def close(self) -> None:
        """Listen no more, unless somebody is there again."""
        with self.lock:
            self._is_emptying = False
            if self._seats or self._listener is None:
                return
            listener, self._listener = self._listener, None
        listener.stop()

    def _leave(self, seat: Seat) -> None:
        with self.lock:
            self._seats.remove(seat)
            # Where it has found something there may be more, and where it was only sent
            # nobody has looked.
            for queue in seat.errands:
                self._call_one(queue)
            if self._listener is not None and not self._is_emptying:
                later(LINGERS_FOR, self.close)
                self._is_emptying = True

    # ── What is heard ──────────────────────────────────────────────────────────

    def _listen(self) -> None:
        if self._listener is None and can_listen(self._database):
            # All queues: those that are served here change with each who comes.
            polling = WorkerConfiguration(polling_interval=timedelta(seconds=LAST_LOOK))
            listener = Listener(
                polling,
                database=self._database,
                on_news=self.tell,
                on_cancellation=self.tell_all,
                on_tuning=self.tell_all,
            )
            # Where no thread can be had it raises, and the next one tries again.
            listener.start()
            self._listener = listener

    def tell(self, queues: Collection[str]) -> None:
        """There is news of these queues; of any, if none is named."""
        with self.lock:
            for queue in queues:
                self._call_one(queue)
        if not queues:
            self.tell_all()

    def tell_all(self) -> None:
        """There is something that anybody may want to know."""
        with self.lock:
            for each in self._seats:
                each.call()

    def _call_one(self, queue: str) -> None:
        """Send the first who serves it, rather one who is not sent yet."""
        serving = [each for each in self._seats if each.serves(queue)]
        seat = min(serving, key=lambda each: each.is_called, default=None)
        if seat is not None:
            seat.call(queue)


rooms = Own(Room)
