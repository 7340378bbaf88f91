"""Pausing: no new work from the next poll on, whoever says it and how often."""

import pytest
from django.db import transaction

from robust_queue.compat import InvalidTask
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.pause import pause, resume
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
