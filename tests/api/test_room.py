"""Who waits is sent to look when there is news, one of them for each piece."""

import socket
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest
from django.db import connection, connections

from robust_queue import enqueue_all
from robust_queue.api import room as waiting_room
from robust_queue.api import waiting
from robust_queue.api.room import Room
from robust_queue.lifecycle import wake as waking
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.quiet import quiet_process, wake_process
from robust_queue.lifecycle.wake import wake
from robust_queue.processes.listener import can_listen
from tests.support.supervisors import until

from .conftest import Outsider

pytestmark = pytest.mark.timeout(60)

# Longer than any test lasts: whoever looks before has been sent.
FOR_EVER = 100.0


@pytest.fixture
def asleep(monkeypatch):
    """Nobody looks without having been sent."""
    monkeypatch.setattr(waiting_room, "FIRST_LOOK", FOR_EVER)
    monkeypatch.setattr(waiting_room, "LAST_LOOK", FOR_EVER)


class TestSeats:
    """Who is called; whether there are databases does not matter."""

    @pytest.fixture
    def room(self):
        return Room("default")

    @pytest.fixture
    def leaving(self):
        """Seats that are left before others."""
        with ExitStack() as stack:
            yield stack

    def test_of_those_who_serve_a_queue_the_first_is_called(self, room):
        with seats(room, ["mail"], ["pdf"], ["*"]) as (mail, first, second):
            room.tell(["pdf"])
            assert called(mail, first, second) == [False, True, False]

    def test_of_more_news_the_next_is_called(self, room):
        with seats(room, ["pdf"], ["p*"]) as (first, second):
            room.tell(["pdf"])
            room.tell(["pdf"])
            assert called(first, second) == [True, True]

    def test_who_has_found_something_sends_the_next_one(self, room, leaving):
        first = leaving.enter_context(room.seat(["pdf"]))
        with room.seat(["pdf"]) as second:
            room.tell(["pdf"])
            first.rest(FOR_EVER)
            assert called(first, second) == [False, False]
            leaving.close()
            assert second.is_called

    def test_who_has_looked_in_vain_sends_nobody(self, room, leaving):
        first = leaving.enter_context(room.seat(["pdf"]))
        with room.seat(["pdf"]) as second:
            room.tell(["pdf"])
            first.rest(FOR_EVER)
            first.rest(0)
            leaving.close()
            assert not second.is_called

    def test_who_leaves_without_a_look_sends_another(self, room, leaving):
        first = leaving.enter_context(room.seat(["pdf"]))
        with room.seat(["mail", "pdf"]) as second:
            room.tell(["pdf"])
            assert called(first, second) == [True, False]
            leaving.close()
            assert second.is_called

    def test_who_is_quiet_is_called_for_nothing_but_what_all_want_to_know(self, room):
        with seats(room, [], ["pdf"]) as (quiet, other):
            room.tell(["pdf"])
            assert called(quiet, other) == [False, True]
            room.tell([])
            assert called(quiet, other) == [True, True]

    def test_who_was_called_looks_a_second_time_soon(self, room, asleep):
        """News that comes close behind other news is not sent."""
        with room.seat(["pdf"]) as seat:
            room.tell(["pdf"])
            seat.rest(FOR_EVER)
            seat.rest(FOR_EVER)


class Patched:
    """A socket as some servers patch it: it waits for words, whatever the flags say."""

    def __init__(self, door):
        self.fileno = door.fileno
        self.recv = lambda size, flags: door.recv(size, socket.MSG_PEEK)


def test_who_says_nothing_is_not_waited_for():
    here, there = socket.socketpair()
    with here:
        request = SimpleNamespace(META={"gunicorn.socket": Patched(here)})
        assert not waiting._has_hung_up(request)
        there.close()
        assert waiting._has_hung_up(request)


@contextmanager
def seats(room, *served):
    with ExitStack() as stack:
        yield [stack.enter_context(room.seat(each)) for each in served]


def called(*some):
    return [each.is_called for each in some]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only it notifies")
@pytest.mark.django_db(transaction=True)
class TestNews:
    """Of PostgreSQL, heard by one listener for all who wait."""

    @pytest.fixture(autouse=True)
    def waiters(self, render, asleep, settings, rooms, monkeypatch):
        monkeypatch.setattr(waiting_room, "can_listen", can_listen)
        settings.ROBUST_QUEUE = {"api_longest_wait": FOR_EVER}
        waking._sent_at.clear()
        self.render, self.room = render, rooms.of("default")
        with ExitStack() as self.stay:
            # Before anybody waits: who does looks when it begins.
            self.stay.enter_context(self.room.seat([]))
            until(self.hears, "a probe has come through")
            yield

    def hears(self):
        self.room.probe()
        listener = self.room._listener
        return listener is not None and listener.hears

    @contextmanager
    def waiting(self, *workers, **told):
        with ThreadPoolExecutor(len(workers)) as threads:
            ends = [threads.submit(self.dequeue, it, told) for it in workers]
            until(lambda: self.number == len(workers), "they wait")
            yield ends
            # Whoever still waits has been forgotten.
            until(lambda: all(each.done() for each in ends), "all have been told")

    @property
    def number(self):
        return len(self.room._seats) - 1

    def dequeue(self, worker, told):
        try:
            return worker.dequeue(wait=FOR_EVER, **told)
        finally:
            connections.close_all()

    def test_a_job_is_given_at_once(self):
        with self.waiting(Outsider()) as (end,):
            result = self.render.enqueue()
        assert [job["id"] for job in end.result()["jobs"]] == [result.id]

    def test_several_at_once_are_for_several(self):
        """One piece of news tells of all: each sends the next one."""
        workers = [Outsider() for _ in range(3)]
        with self.waiting(*workers, limit=1) as ends:
            enqueue_all([self.render.bind(n) for n in range(3)])
        given = sorted(job["args"][0] for it in ends for job in it.result()["jobs"])
        assert given == [0, 1, 2]

    def test_who_does_not_live_any_more_sends_another(self):
        first, second = Outsider(), Outsider()
        with self.waiting(first, second) as ends:
            first.leave()
            # Whoever came first is sent first, and may have left.
            self.render.enqueue()
            until(lambda: any(each.done() for each in ends), "one is told")
            wake("default")
            self.render.enqueue()
        heard = [each.result() for each in ends]
        assert [each["alive"] for each in heard] == [False, True]
        assert len(heard[1]["jobs"]) == 1

    def test_a_cancellation_is_told_at_once(self):
        worker = Outsider()
        result = self.render.enqueue()
        worker.take()
        with self.waiting(worker) as (end,):
            cancel("default", uuid.UUID(result.id))
        assert end.result()["cancelled"] == [result.id]

    def test_that_it_is_to_be_quiet_or_not_is_told_at_once(self):
        worker = Outsider()
        with self.waiting(worker) as (end,):
            quiet_process("default", uuid.UUID(worker.id))
        assert end.result()["quiet"]
        result = self.render.enqueue()
        with self.waiting(worker) as (end,):
            wake_process("default", uuid.UUID(worker.id))
        assert [job["id"] for job in end.result()["jobs"]] == [result.id]

    def test_nobody_listens_when_the_room_is_empty(self):
        self.room.close()
        assert listening()
        self.stay.close()
        self.room.close()
        until(lambda: not listening(), "its connection is closed")


def listening():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
            " AND datname = current_database()"
        )
        return cursor.fetchone()[0]
