"""Signals of processes and queues: nobody who listens does any harm."""

from dataclasses import FrozenInstanceError

import pytest
from django.db import transaction
from django.dispatch import Signal

from robust_queue.lifecycle.pause import pause, resume
from robust_queue.models import Pause
from robust_queue.signals import ProcessFacts, queue_paused, queue_resumed, tell
from tests.support.receivers import connected


class Sender:
    pass


@pytest.fixture
def signal():
    return Signal()


class TestTell:
    def test_a_receiver_gets_the_facts(self, signal):
        heard = []
        with connected(signal, lambda **facts: heard.append(facts)):
            tell(signal, Sender, queue_name="mail")
        assert heard == [{"signal": signal, "sender": Sender, "queue_name": "mail"}]

    def test_only_those_hear_it_who_listen_to_this_sender(self, signal):
        heard = []
        with connected(signal, lambda **facts: heard.append(facts), sender=Signal):
            tell(signal, Sender)
            signal.disconnect(signal.receivers[0][1], sender=Signal)
        assert heard == []

    def test_nobody_has_to_listen(self, signal):
        assert tell(signal, Sender) is None

    @pytest.mark.parametrize(
        "error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), MemoryError()]
    )
    def test_an_error_is_reported_and_the_next_has_its_turn(
        self, signal, error, caplog
    ):
        heard = []

        def fail(**facts):
            raise error

        with connected(signal, fail), connected(signal, lambda **f: heard.append(1)):
            tell(signal, Sender)
        assert heard == [1]
        (line,) = caplog.records
        assert line.exc_info[1] is error
        assert f"{__name__}.TestTell" in line.getMessage()
        assert "fail was told of a signal" in line.getMessage()

    def test_coroutines_listen_as_well(self, signal, caplog):
        heard = []

        async def hear(**facts):
            heard.append(facts["n"])

        async def fail(**facts):
            raise ValueError("in vain")

        with connected(signal, fail), connected(signal, hear):
            tell(signal, Sender, n=1)
        assert heard == [1]
        assert "fail was told" in caplog.records[0].getMessage()

    def test_an_object_listens_as_well(self, signal, caplog):
        class Deaf:
            def __call__(self, **facts):
                raise ValueError

        with connected(signal, Deaf()):
            tell(signal, Sender)
        assert "Deaf was told of a signal" in caplog.records[0].getMessage()


def test_facts_of_a_process_are_facts():
    facts = ProcessFacts(kind="Worker", name="worker-1", pid=1, database="default")
    assert facts.details == {}
    with pytest.raises(FrozenInstanceError):
        facts.pid = 2


@pytest.fixture
def heard():
    told = []

    def hear(signal, sender, queue_name, database, **kwargs):
        name = "paused" if signal is queue_paused else "resumed"
        told.append((name, sender, queue_name, database))

    with connected(queue_paused, hear), connected(queue_resumed, hear):
        yield told


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
class TestQueues:
    def test_only_a_change_is_told(self, heard):
        pause("other", "mail"), pause("other", "mail")
        assert heard == [("paused", Pause, "mail", "other")]
        heard.clear()
        resume("other", "mail"), resume("other", "mail")
        assert heard == [("resumed", Pause, "mail", "other")]

    def test_when_it_is_committed(self, heard):
        with transaction.atomic():
            pause("default", "mail")
            assert heard == []
        assert [told[0] for told in heard] == ["paused"]

    def test_and_not_if_it_never_is(self, heard):
        with transaction.atomic():
            pause("default", "mail")
            transaction.set_rollback(True)
        assert heard == []

    def test_whoever_fails_to_listen_keeps_no_queue_open(self, caplog):
        def fail(**kwargs):
            raise SystemExit

        with connected(queue_paused, fail):
            assert pause("default", "mail") is True
        assert Pause.objects.filter(pk="mail").exists()
        assert len(caplog.records) == 1
