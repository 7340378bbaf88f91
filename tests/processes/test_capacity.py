"""How many jobs a worker asks for, with a clock that stands still unless told."""

import math

import pytest

from robust_queue.processes.capacity import FIRST_PAUSE, LONGEST_PAUSE, Capacity, Count

WHOLE = Count(threads=3, coroutines=100)


class Asking:
    """A worker that asks, and is given jobs of the kinds that wait."""

    def __init__(self, whole=WHOLE, *, expects=True):
        self.capacity = Capacity(whole)
        if expects:
            self.capacity.expect_coroutines()
        self.now = 1000.0

    def limit(self, threads, coroutines):
        return self.capacity.limit(Count(threads, coroutines), now=self.now)

    def ask(self, room, waiting):
        """Ask for jobs; "s" and "c" are what waits. Returns what was given."""
        limit = self.limit(*room)
        given = waiting[:limit]
        came = Count(given.count("s"), given.count("c"))
        self.capacity.learn(Count(*room), came, limit=limit, now=self.now)
        return given

    def pause(self, *room):
        return self.capacity.pause(Count(*room), now=self.now)


def test_without_coroutines_there_are_as_many_as_free_threads():
    asking = Asking(Count(3, 0), expects=False)
    for _ in range(3):
        assert asking.ask((3, 0), "") == ""
        assert asking.ask((2, 0), "ssssss") == "ss"
    assert asking.limit(0, 0) == 0
    assert asking.pause(0, 0) == math.inf


def test_who_has_never_seen_a_coroutine_does_not_look_for_any():
    asking = Asking(expects=False)
    for _ in range(10):
        assert asking.ask((3, 100), "s" * 50) == "sss"
    assert asking.limit(0, 100) == 0
    assert asking.pause(0, 100) == math.inf


def test_the_first_coroutine_makes_it_look_for_more():
    asking = Asking(expects=False)
    assert asking.ask((3, 100), "scs") == "scs"
    assert asking.limit(0, 99) == 1


def test_coroutines_fill_their_room_in_a_few_rounds():
    asking, free, rounds = Asking(Count(3, 200)), 200, 0
    while free > 0:
        free -= len(asking.ask((3, free), "c" * 1000))
        rounds += 1
    assert rounds <= 8


def test_nothing_too_much_is_asked_for_while_only_coroutines_come():
    asking = Asking()
    while len(asking.ask((3, 100), "c" * 1000)) <= 100:
        pass
    for free in (100, 7, 1, 30):
        assert asking.ask((3, free), "c" * 1000) == "c" * free


def test_synchronous_jobs_that_no_thread_is_free_for_end_the_hope():
    asking = Asking()
    for _ in range(6):
        asking.ask((0, 100), "c" * 1000)
    assert asking.ask((3, 60), "s" * 1000).count("s") > 3
    assert asking.limit(0, 60) == 0
    assert asking.limit(2, 60) == 2, "no more than fits, whatever comes"
    assert asking.pause(0, 60) == pytest.approx(FIRST_PAUSE)
    asking.now += FIRST_PAUSE
    assert asking.limit(0, 60) == 1


def test_busy_threads_are_not_made_up_for_by_asking_ever_again():
    asking, begun = Asking(), 1000.0
    asked = 0
    while asking.now < begun + 60:
        if asking.ask((0, 100), "s" * 1000):
            asked += 1
        pause = asking.pause(0, 100)
        assert 0 < pause <= LONGEST_PAUSE
        asking.now += pause
    assert asked < 70


def test_it_hopes_again_when_the_pause_was_worth_it():
    asking = Asking()
    for _ in range(5):
        asking.ask((0, 100), "s")
        asking.now += asking.pause(0, 100)
    assert asking.ask((0, 100), "ccc") == "c"
    assert asking.ask((0, 99), "cc") == "cc"
    assert asking.ask((0, 97), "s") == "s"
    assert asking.pause(0, 97) == pytest.approx(FIRST_PAUSE)


def test_an_idle_worker_forgets_how_many_there_were():
    asking = Asking()
    for _ in range(8):
        asking.ask((3, 100), "c" * 1000)
    assert asking.limit(0, 100) == 100
    for _ in range(8):
        asking.ask((3, 100), "")
    assert asking.limit(0, 100) == 1


def test_threads_stay_free_rather_than_take_coroutines_in_vain():
    asking = Asking()
    assert asking.ask((3, 0), "ccc") == "ccc"
    assert asking.limit(3, 0) == 0
    assert asking.pause(3, 0) == pytest.approx(FIRST_PAUSE)
    assert asking.limit(3, 2) == 2, "a place for a coroutine is free again"
    asking.now += FIRST_PAUSE
    assert asking.limit(3, 0) == 1


@pytest.mark.parametrize("waiting", ["s" * 300, "c" * 300, "sc" * 150, "sssccc" * 50])
def test_everything_is_taken_in_the_end_and_little_of_it_in_vain(waiting):
    """Each round everything that runs has ended, and a pause is waited for."""
    asking, in_vain = Asking(Count(3, 10)), 0
    for _ in range(1000):
        if not waiting:
            break
        given = asking.ask((3, 10), waiting)
        fits = {"s": 3, "c": 10}
        back = ""
        for kind in given:
            fits[kind] -= 1
            back += kind if fits[kind] < 0 else ""
        in_vain += len(back)
        waiting = back + waiting[len(given) :]
        asking.now += 0.02
    assert not waiting
    assert in_vain < 75


class TestIsolated:
    def test_a_worker_that_isolates_everything_asks_for_as_many_as_fit(self):
        capacity = Capacity(Count(0, 0, 4))
        assert capacity.limit(Count(3, 100, 2), now=0.0) == 2
        assert capacity.pause(Count(3, 100, 0), now=0.0) == math.inf

    def test_one_is_hoped_for_beyond_the_threads(self):
        capacity = Capacity(Count(3, 100, 3))
        assert capacity.limit(Count(3, 100, 3), now=0.0) == 4

    def test_where_none_comes_it_rests(self):
        capacity, room = Capacity(Count(3, 0, 3)), Count(0, 0, 3)
        assert capacity.limit(room, now=0.0) == 1
        capacity.learn(room, Count(1, 0, 0), limit=1, now=0.0)
        assert capacity.limit(room, now=0.0) == 0
        assert capacity.pause(room, now=0.0) == FIRST_PAUSE

    def test_those_that_come_make_it_hope_for_more(self):
        capacity, room = Capacity(Count(3, 0, 8)), Count(0, 0, 8)
        capacity.learn(room, Count(0, 0, 1), limit=1, now=0.0)
        assert capacity.limit(room, now=0.0) == 2
