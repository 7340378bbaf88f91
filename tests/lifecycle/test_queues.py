"""The list of queues: complete, in few statements, however many there are."""

from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from robust_queue.lifecycle.pause import pause
from robust_queue.lifecycle.queues import QueueStatus, queue_names, queues
from robust_queue.models import Pause, ReadyExecution
from tests.support.statements import statements
from tests.testapp.tasks import elsewhere, note

pytestmark = pytest.mark.django_db

BACKEND = "robust_queue.backend.RobustQueueBackend"
WORKERS = {"workers": [{"queues": ["mail", "photos*", "*"]}, {"queues": "reports"}]}


def enqueue(queue, since=timedelta(0)):
    result = note.using(queue_name=queue).enqueue()
    moment = timezone.now() - since
    ReadyExecution.objects.filter(pk=result.id).update(created_at=moment)
    return moment


def by_name(database="default"):
    return {status.name: status for status in queues(database)}


def test_nothing_named_nothing_listed():
    assert queues("default") == []
    assert queue_names("default") == []


def test_ready_jobs_are_counted_and_the_oldest_tells_the_latency():
    oldest = enqueue("mail", since=timedelta(minutes=5))
    enqueue("mail", since=timedelta(minutes=1))
    enqueue("photos")
    found = by_name()
    assert list(found) == ["mail", "photos"]
    assert found["mail"].ready == 2
    assert found["mail"].oldest_ready_at == oldest
    assert timedelta(minutes=5) <= found["mail"].latency < timedelta(minutes=6)
    assert not found["mail"].is_paused


def test_a_clock_that_is_ahead_makes_no_negative_latency():
    enqueue("mail", since=-timedelta(hours=1))
    assert by_name()["mail"].latency == timedelta(0)


def test_a_paused_queue_is_listed_with_and_without_jobs():
    enqueue("mail")
    pause("default", "mail")
    pause("default", "empty")
    found = by_name()
    since = Pause.objects.get(pk="empty").created_at
    assert found["empty"] == QueueStatus(name="empty", paused_at=since)
    assert found["mail"].ready == 1
    assert found["mail"].is_paused
    assert queue_names("default") == ["empty", "mail"]


@override_settings(ROBUST_QUEUE=WORKERS)
def test_queues_that_workers_name_exactly_are_listed():
    assert list(by_name()) == ["mail", "reports"]
    assert by_name()["mail"] == QueueStatus(name="mail")
    assert queue_names("default") == ["mail", "reports"]


@override_settings(
    TASKS={
        "default": {"BACKEND": BACKEND, "QUEUES": ["mail", "a*b"]},
        "other": {
            "BACKEND": BACKEND,
            "QUEUES": ["photos"],
            "OPTIONS": {"DATABASE": "other"},
        },
        "dummy": {
            "BACKEND": "django_tasks.backends.dummy.DummyBackend",
            "QUEUES": ["dummies"],
        },
    }
)
@pytest.mark.django_db(databases=["default", "other"])
def test_queues_of_the_aliases_on_this_database_are_listed():
    assert list(by_name()) == ["mail"]
    assert list(by_name("other")) == ["photos"]


@pytest.mark.django_db(databases=["default", "other"])
def test_each_database_has_its_own_queues():
    elsewhere.enqueue()
    assert queues("default") == []
    assert [status.name for status in queues("other")] == ["default"]


def test_the_number_of_statements_does_not_depend_on_the_number_of_queues():
    for number in range(20):
        enqueue(f"queue-{number}")
        pause("default", f"paused-{number}")
    with statements() as sent:
        assert len(queues("default")) == 40
    assert len(sent) == 2
    with statements() as sent:
        assert len(queue_names("default")) == 40
    assert len(sent) == 2
