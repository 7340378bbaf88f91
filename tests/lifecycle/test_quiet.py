"""Processes that are asked to be quiet, to go on, and to end: what is written down."""

import json
from datetime import timedelta

import pytest

from robust_queue.exceptions import TuningError
from robust_queue.lifecycle.quiet import (
    is_to_stop,
    quiet_process,
    stop_process,
    wake_process,
)
from robust_queue.lifecycle.tune import Wish, orders_for, tune
from robust_queue.lifecycle.workers import workers
from robust_queue.models import Tuning
from tests.support import rows
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

LONG = timedelta(hours=3)


@pytest.fixture
def chief():
    return rows.process("Supervisor")


def worker_of(chief, **tuned):
    facts = {"queues": ["*"], "threads": 3, "most_threads": 40, "tuned": tuned}
    facts["quiet"] = bool(tuned.get("quiet"))
    return rows.process(supervisor_id=chief.pk, metadata=json.dumps(facts))


def orders(worker):
    return orders_for("default", worker.pk, worker.supervisor_id)


class TestAWorker:
    def test_it_is_quiet_until_it_is_woken(self, chief):
        worker = worker_of(chief)
        assert orders(worker) == (None, False, False, False)
        assert quiet_process("default", worker.name).pk == worker.pk
        assert orders(worker).wish == Wish(is_quiet=True)
        wake_process("default", worker.pk)
        assert orders(worker).wish == Wish()

    def test_other_wishes_stay(self, chief):
        worker = worker_of(chief)
        tune("default", worker.pk, threads=5)
        quiet_process("default", worker.pk)
        assert orders(worker).wish == Wish(5, is_quiet=True)
        tune("default", worker.pk, queues=["mail"])
        assert orders(worker).wish == Wish(5, ("mail",), is_quiet=True)
        tune("default", worker.pk, reset=True)
        assert orders(worker).wish == Wish(is_quiet=True), "that is no configuration"
        wake_process("default", worker.pk)
        assert orders(worker).wish == Wish()

    def test_what_was_inherited_stays_as_well(self, chief):
        worker = worker_of(chief, threads=7, quiet=True)
        stop_process("default", worker.pk)
        assert orders(worker) == (Wish(7, is_quiet=True), True, False, False)

    def test_the_end_is_asked_of_one_alone(self, chief):
        worker, other = worker_of(chief), worker_of(chief)
        stop_process("default", worker.pk)
        assert orders(worker).is_to_stop is True
        assert orders(other) == (None, False, False, False)
        assert is_to_stop("default", worker.pk)
        assert not is_to_stop("default", other.pk)

    def test_a_text_that_is_handed_down_says_nothing_of_the_end(self):
        assert Wish(is_quiet=True).facts == {"quiet": True}
        assert Wish.of(json.loads(Wish(is_quiet=True).text)) == Wish(is_quiet=True)
        assert Wish.of({"quiet": "yes"}) == Wish()


class TestASupervisor:
    def test_all_its_workers_are_quiet_also_those_to_come(self, chief):
        before = worker_of(chief)
        quiet_process("default", chief.name)
        for each in (before, worker_of(chief)):
            assert orders(each) == (None, False, True, False)
        stranger = worker_of(rows.process("Supervisor"))
        assert orders(stranger).is_household_quiet is False

    def test_all_are_woken_also_those_that_were_quiet_alone(self, chief):
        asked, inherited = worker_of(chief), worker_of(chief, threads=4, quiet=True)
        quiet_process("default", asked.pk)
        stranger = worker_of(rows.process("Supervisor"))
        quiet_process("default", stranger.pk)
        quiet_process("default", chief.pk)
        wake_process("default", chief.pk)
        assert orders(asked) == (Wish(), False, False, False)
        assert orders(inherited) == (Wish(4), False, False, False)
        assert orders(stranger).wish == Wish(is_quiet=True)

    def test_no_worker_is_woken_alone_where_all_are_quiet(self, chief):
        worker = worker_of(chief)
        quiet_process("default", chief.pk)
        with pytest.raises(TuningError, match=chief.name):
            wake_process("default", worker.pk)

    def test_its_end_is_read_by_its_workers(self, chief):
        worker = worker_of(chief)
        stop_process("default", chief.pk)
        assert orders(worker) == (None, False, False, True)
        assert is_to_stop("default", chief.pk)


class TestWhoIsMeant:
    @pytest.mark.parametrize("verb", [quiet_process, wake_process, stop_process])
    def test_who_is_not_there_is_asked_nothing(self, chief, verb):
        gone = rows.process(silent_for=LONG)
        dispatcher = rows.process("Dispatcher")
        for each in ("nobody", "", "\0", gone.pk, gone.name, dispatcher.pk):
            with pytest.raises(TuningError, match="No live worker or supervisor"):
                verb("default", each)
        worker_of(chief), worker_of(chief)
        with pytest.raises(TuningError, match="Several workers"):
            verb("default", "worker-")
        assert not Tuning.objects.exists()

    def test_workers_tell_that_they_are_quiet(self, chief):
        worker_of(chief, quiet=True), worker_of(chief)
        assert sorted(each.is_quiet for each in workers("default")) == [False, True]
        assert {each.chief for each in workers("default")} == {chief.pk}

    def test_a_worker_asks_for_all_of_it_at_once(self, chief):
        worker = worker_of(chief)
        with statements() as sent:
            orders(worker)
        assert len(sent) == 1
