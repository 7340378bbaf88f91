"""The dispatcher comes when something is due, and otherwise as seldom as before."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.configuration import DispatcherConfiguration
from robust_queue.models import ReadyExecution, ScheduledExecution
from robust_queue.processes.dispatcher import BETWEEN_LOOKS, Dispatcher
from tests.support import rows
from tests.support.statements import statements
from tests.support.threads import uncommitted

pytestmark = pytest.mark.django_db


def a_dispatcher(**options):
    it = Dispatcher(DispatcherConfiguration(**options), database="default")
    it._upkeep._next = time.monotonic() + 3600
    return it


def scheduled(seconds):
    return rows.scheduled(scheduled_at=timezone.now() + timedelta(seconds=seconds))


def scheduled_statements(sent):
    return [each for each in sent.changes if "scheduled_executions" in each]


def test_without_anything_scheduled_a_look_is_one_statement():
    with statements() as sent:
        pause = a_dispatcher().turn()
    assert 0.7 < pause < 1.3
    assert len(sent) == 1


def test_what_is_due_later_than_the_next_poll_changes_nothing():
    scheduled(60)
    with statements() as sent:
        pause = a_dispatcher().turn()
    assert 0.7 < pause < 1.3
    assert len(sent) == 1


def test_it_comes_back_when_the_next_one_is_due():
    scheduled(60)
    scheduled(0.4)
    assert BETWEEN_LOOKS < a_dispatcher().turn() <= 0.4


def test_but_not_too_often():
    scheduled(0.001)
    assert a_dispatcher()._dispatch() == BETWEEN_LOOKS


def test_when_something_was_moved_it_looks_for_more_soon():
    scheduled(-1)
    assert a_dispatcher()._dispatch() == BETWEEN_LOOKS
    assert ReadyExecution.objects.count() == 1


def test_a_full_batch_is_followed_by_the_next_at_once():
    for _ in range(5):
        scheduled(-1)
    dispatcher = a_dispatcher(batch_size=2)
    assert [dispatcher.turn() for _ in range(2)] == [0, 0]
    assert dispatcher.turn() > 0
    assert not ScheduledExecution.objects.exists()


def test_who_polls_more_often_goes_on_to():
    assert a_dispatcher(polling_interval=0.005).turn() < 0.01
    scheduled(-1)
    assert a_dispatcher(polling_interval=0.005).turn() < 0.01


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("row_locks")
def test_what_somebody_else_holds_does_not_make_it_spin():
    held = scheduled(-1)

    def lock():
        list(ScheduledExecution.objects.select_for_update().filter(pk=held.pk))

    with uncommitted(lock):
        assert a_dispatcher().turn() > 0.7


@pytest.mark.django_db(transaction=True)
def test_scheduled_jobs_are_on_time(supervised):
    """With the defaults, under which a poll comes once a second."""
    supervisor = supervised(dispatchers=[{}]).until_up()
    late = []
    for _ in range(3):
        it = scheduled(1.3)
        supervisor.until(lambda: not ScheduledExecution.objects.exists(), "it is due")
        late.append((timezone.now() - it.scheduled_at).total_seconds())
    assert supervisor.stop() == 0
    print(f"\nlate by {', '.join(f'{1000 * each:.0f} ms' for each in late)}")  # noqa: T201
    assert min(late) >= 0
    assert sorted(late)[1] < 0.3
