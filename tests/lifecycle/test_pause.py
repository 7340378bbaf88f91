"""Pausing: no new work from the next poll on, whoever says it and how often."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from robust_queue import signals
from robust_queue.compat import InvalidTask
from robust_queue.lifecycle import pause as lifecycle_pause
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.pause import end_pauses, pause, resume
from robust_queue.lifecycle.queues import queue_names, queues
from robust_queue.models import Pause
from robust_queue.testing import drain
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.support.threads import in_thread, in_threads, started, uncommitted
from tests.testapp.tasks import mail, note

BAD_NAMES = ["", "mail*", "*", " mail", "mail ", "ma\nil", "m" * 129, None, 7]


@pytest.mark.django_db
def test_a_paused_queue_gives_out_nothing_and_others_go_on(performed):
    mail.enqueue("ada@example.org")
    note.enqueue()
    assert pause("default", "mail") is True
    drain()
    assert performed == [((), {})]
    assert resume("default", "mail") is True
    drain()
    assert performed[1:] == [("mail", "ada@example.org")]


@pytest.mark.django_db
def test_what_is_claimed_already_goes_on():
    mail.enqueue("ada@example.org")
    claim("default", process_id=a_process())
    pause("default", "mail")
    assert list(states().values()) == ["claimed"]


@pytest.mark.django_db
def test_saying_it_twice_changes_nothing():
    assert pause("default", "mail") is True
    since = Pause.objects.get().created_at
    assert pause("default", "mail") is False
    assert Pause.objects.get().created_at == since
    assert resume("default", "mail") is True
    assert resume("default", "mail") is False


@pytest.mark.django_db
def test_the_callers_transaction_survives_a_pause_that_is_there():
    pause("default", "mail")
    with transaction.atomic():
        assert pause("default", "mail") is False
        assert pause("default", "photos") is True
    assert Pause.objects.count() == 2


@pytest.mark.django_db
def test_names_differ_by_case():
    assert pause("default", "mail") is True
    assert pause("default", "Mail") is True


@pytest.mark.django_db(databases=["default", "other"])
def test_each_database_has_its_own_pauses():
    pause("other", "mail")
    assert not Pause.objects.using("default").exists()
    assert resume("default", "mail") is False
    assert resume("other", "mail") is True


@pytest.mark.django_db
@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_are_judged_as_enqueue_judges_them(name):
    for verb in (pause, resume):
        with pytest.raises(InvalidTask, match="a name has"):
            verb("default", name)
    if name:
        # Django itself takes None and "" for the task's own queue.
        with pytest.raises(InvalidTask):
            note.using(queue_name=name).enqueue()


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_has_done_it():
    outcomes = in_threads([lambda: pause("default", "mail")] * 4)
    assert sorted(outcomes) == [False, False, False, True]
    outcomes = in_threads([lambda: resume("default", "mail")] * 4)
    assert sorted(outcomes) == [False, False, False, True]
    assert not Pause.objects.exists()


@pytest.mark.usefixtures("row_locks")
def test_who_pauses_beside_an_open_transaction_waits_for_its_end():
    with uncommitted(pause, "default", "mail"):
        second = started(pause, "default", "mail")
    assert second.result(30) is False
    assert in_thread(Pause.objects.count) == 1


# ── Pauses with an end ─────────────────────────────────────────────────────────

MINUTE = timedelta(minutes=1)
QUEUES = [("*",), ("mail",), ("ma*",), ("photos", "*")]


def end(queue="mail"):
    return Pause.objects.get(pk=queue).until


def taken(queues=("*",)):
    claims = claim("default", process_id=a_process(), queues=queues, limit=10)
    return {each.queue_name for each in claims}


@pytest.fixture
def told():
    """Which queues were paused and resumed, as the signals tell."""
    found = []

    def hear(signal, queue_name, **_):
        verb = "paused" if signal is signals.queue_paused else "resumed"
        found.append((verb, queue_name))

    for each in (signals.queue_paused, signals.queue_resumed):
        each.connect(hear)
    yield found
    for each in (signals.queue_paused, signals.queue_resumed):
        each.disconnect(hear)


def over(queue="mail"):
    """The time of a pause has come to its end, and nobody has swept it away."""
    pause("default", queue, until=MINUTE)
    Pause.objects.filter(pk=queue).update(until=timezone.now())


@pytest.mark.django_db
class TestUntil:
    @pytest.mark.parametrize("queues", QUEUES, ids=",".join)
    def test_work_is_given_out_again_without_anybody_sweeping(self, queues):
        mail.enqueue("ada@example.org")
        note.using(queue_name="photos").enqueue()
        pause("default", "mail", until=MINUTE)
        assert "mail" not in taken(queues)
        Pause.objects.update(until=timezone.now())
        assert "mail" in taken(queues)

    @pytest.mark.parametrize("queues", QUEUES, ids=",".join)
    def test_one_pause_that_is_over_does_not_hide_another(self, queues):
        mail.enqueue("ada@example.org")
        over("photos")
        pause("default", "mail", until=MINUTE)
        assert taken(queues) == set()

    def test_a_moment_or_a_length_of_time(self):
        moment = timezone.now() + timedelta(hours=3)
        pause("default", "mail", until=moment)
        assert end() == moment
        pause("default", "mail", until=timedelta(hours=3))
        assert timedelta(0) < end() - moment < MINUTE

    def test_what_is_said_last_counts(self):
        assert pause("default", "mail", until=MINUTE) is True
        first = end()
        assert pause("default", "mail", until=2 * MINUTE) is False
        assert end() > first
        assert pause("default", "mail") is False
        assert end() is None
        assert pause("default", "mail", until=MINUTE) is False
        assert end() is not None

    @pytest.mark.parametrize(
        ("until", "words"),
        [
            (timedelta(0), "in the future"),
            (-MINUTE, "in the future"),
            (datetime(2020, 1, 1, tzinfo=UTC), "in the future"),
            (datetime(2120, 1, 1), "without a time zone"),  # noqa: DTZ001
            (timedelta.max, "out of reach"),
            (datetime.max.replace(tzinfo=UTC), "out of reach"),
        ],
    )
    def test_nonsense_is_refused_and_changes_nothing(self, until, words):
        pause("default", "mail")
        with pytest.raises(ValueError, match=words):
            pause("default", "mail", until=until)
        assert end() is None

    def test_the_list_of_queues_does_not_show_what_is_over(self):
        over()
        pause("default", "photos", until=MINUTE)
        found = {each.name: each for each in queues("default")}
        assert list(found) == ["photos"]
        assert found["photos"].paused_until == end("photos")
        assert queue_names("default") == ["photos"]


@pytest.mark.django_db(transaction=True)
class TestTheSweep:
    def test_it_takes_away_what_is_over_and_tells_once(self, told):
        over()
        pause("default", "photos", until=MINUTE)
        pause("default", "reports")
        told.clear()
        assert end_pauses("default") == end("photos")
        assert end_pauses("default") == end("photos")
        assert told == [("resumed", "mail")]
        assert Pause.objects.count() == 2

    def test_of_many_sweepers_one_tells(self, told):
        over()
        told.clear()
        in_threads([lambda: end_pauses("default")] * 4)
        assert told == [("resumed", "mail")]

    def test_who_pauses_anew_what_is_over_has_paused_it(self, told):
        over()
        told.clear()
        assert pause("default", "mail", until=MINUTE) is True
        assert told == [("resumed", "mail"), ("paused", "mail")]
        assert end_pauses("default") == end()

    def test_who_resumes_what_is_over_was_not_the_one(self, told):
        over()
        told.clear()
        assert resume("default", "mail") is False
        assert told == [("resumed", "mail")]

    def test_an_end_that_is_put_off_at_the_last_moment_counts(self, told, monkeypatch):
        """The sweeper has read that it is over, and then somebody puts it off."""
        over()
        told.clear()
        later, ended = timezone.now() + MINUTE, lifecycle_pause._end_if_over

        def end_it(database, name):
            in_thread(Pause.objects.filter(pk=name).update, until=later)
            return ended(database, name)

        monkeypatch.setattr(lifecycle_pause, "_end_if_over", end_it)
        end_pauses("default")
        assert end() == later
        assert told == []


@pytest.mark.usefixtures("row_locks")
def test_a_claim_waits_neither_for_who_pauses_nor_for_who_resumes():
    mail.enqueue("ada@example.org")
    with uncommitted(pause, "default", "mail"):
        assert taken() == {"mail"}, "it is not paused before the commit"
    mail.enqueue("ada@example.org")
    with uncommitted(resume, "default", "mail"):
        assert taken() == set()
    assert taken() == {"mail"}
