"""News of ready jobs: when it is sent, to whom, and how often."""

import time
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.test import TestCase
from django.utils import timezone

from robust_queue import enqueue_all
from robust_queue.lifecycle import wake as waking
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.pause import pause, resume
from robust_queue.lifecycle.release import release
from robust_queue.lifecycle.retry import retry
from robust_queue.lifecycle.wake import wake
from robust_queue.stores.news import CHANNEL, LONGEST_PAYLOAD, News
from robust_queue.testing import drain
from tests.support.processes import Claimant, claimant
from tests.testapp.tasks import explode, note

__all__ = ["claimant"]

pytestmark = pytest.mark.django_db(transaction=True)

EVERY_QUEUE = News()


@pytest.fixture(autouse=True)
def no_silence_of_earlier_tests():
    waking._sent_at.clear()


@pytest.fixture
def ear():
    """A listener: what has been told since it was last asked."""
    if connection.vendor != "postgresql":
        pytest.skip("of PostgreSQL only")
    other = connections.create_connection("default")
    with other.cursor() as cursor:
        cursor.execute(f"LISTEN {CHANNEL}")

    def heard():
        # Whatever was sent before this statement has arrived with its reply.
        with other.cursor() as cursor:
            cursor.execute("SELECT 1")
        received = other.connection.notifies(timeout=0)
        return [News.of(each.payload) for each in received]

    yield heard
    other.close()


HOUR = timedelta(hours=1)


def in_an_hour():
    return timezone.now() + HOUR


def of(*queues):
    return News(queues=frozenset(queues))


class TestEnqueue:
    def test_a_ready_job_is_told_by_the_name_of_its_queue_alone(self, ear):
        result = note.using(queue_name="mail").enqueue("it")
        (news,) = ear()
        assert news == of("mail")
        assert result.id not in news.payload

    def test_a_job_for_later_is_not_told(self, ear):
        note.using(run_after=in_an_hour()).enqueue("it")
        assert ear() == []

    def test_many_jobs_are_told_at_once(self, ear):
        enqueue_all(
            note.using(queue_name=name).bind(n)
            for n in range(50)
            for name in ("mail", "reports")
        )
        assert ear() == [of("mail", "reports")]

    def test_a_transaction_tells_once_and_after_its_commit(self, ear):
        with transaction.atomic():
            for name in ("mail", "reports", "mail"):
                note.using(queue_name=name).enqueue("it")
            assert ear() == []
        assert ear() == [of("mail", "reports")]

    def test_a_transaction_that_is_rolled_back_tells_nothing(self, ear):
        with transaction.atomic():
            note.enqueue("it")
            transaction.set_rollback(True)
        assert ear() == []

    def test_a_savepoint_that_is_rolled_back_does_not_silence_the_rest(self, ear):
        with transaction.atomic():
            with transaction.atomic():
                note.using(queue_name="mail").enqueue("gone")
                transaction.set_rollback(True)
            note.using(queue_name="reports").enqueue("it")
        (news,) = ear()
        assert "reports" in news.queues

    def test_the_same_news_is_not_repeated_at_once(self, ear):
        soon = time.monotonic() + 60
        waking._sent_at[("default", frozenset(["default"]))] = soon
        note.enqueue("not told")
        note.using(queue_name="mail").enqueue("told")
        assert ear() == [of("mail")]

    def test_it_is_repeated_when_the_silence_is_over(self, ear):
        wake("default", ["mail"])
        waking._sent_at[("default", frozenset(["mail"]))] -= waking.SILENCE
        wake("default", ["mail"])
        assert ear() == [of("mail"), of("mail")]

    def test_it_can_be_switched_off(self, ear, settings):
        settings.ROBUST_QUEUE = {"notifications": False}
        note.enqueue("it")
        with transaction.atomic():
            note.enqueue("it")
        assert ear() == []

    def test_a_transaction_begun_by_hand_is_left_alone(self, ear):
        transaction.set_autocommit(False)
        try:
            note.enqueue("it")
            transaction.commit()
        finally:
            transaction.set_autocommit(True)
        assert ear() == []

    def test_what_goes_wrong_harms_nobody(self, ear, monkeypatch):
        monkeypatch.setattr("robust_queue.stores.postgresql.CHANNEL", "x" * 100)
        assert note.enqueue("it").id
        with transaction.atomic():
            assert note.enqueue("it").id


class TestOtherWays:
    def test_what_becomes_due_is_told(self, ear):
        note.using(run_after=in_an_hour()).enqueue("it")
        assert dispatch_due("default", now=in_an_hour() + HOUR) == 1
        assert ear() == [EVERY_QUEUE]
        assert dispatch_due("default") == 0
        assert ear() == []

    def test_what_goes_back_is_told(self, ear, claimant):
        note.enqueue("it")
        claims = claim("default", process_id=Claimant.id)
        ear()
        release("default", claims)
        assert ear() == [EVERY_QUEUE]

    def test_what_somebody_retries_is_told(self, ear):
        result = explode.enqueue()
        drain()
        ear()
        assert retry("default", result.id)
        assert ear() == [EVERY_QUEUE]

    def test_a_queue_that_is_resumed_is_told(self, ear):
        pause("default", "mail")
        assert ear() == []
        resume("default", "mail")
        resume("default", "mail")
        assert ear() == [of("mail")]


class TestInsideATestCase(TestCase):
    def test_nobody_meets_hooks_or_statements_of_ours(self):
        waking._sent_at.clear()
        with self.captureOnCommitCallbacks() as hooks:
            wake("default", ["mail"])
        assert hooks == []


class TestPayload:
    def test_it_is_read_as_it_was_written(self):
        for news in (of("mail", 'odd "name", ü'), EVERY_QUEUE, News(probe="me")):
            assert News.of(news.payload) == news

    def test_too_many_names_stand_for_every_queue(self):
        news = of(*(f"queue number {n}" for n in range(1000)))
        assert len(news.payload) < LONGEST_PAYLOAD
        assert News.of(news.payload) == EVERY_QUEUE

    @pytest.mark.parametrize("text", ["", "0", "[]", "{", '{"queues": 3}', "null"])
    def test_what_is_not_understood_wakes_everybody(self, text):
        assert News.of(text) == EVERY_QUEUE
