"""Runs whose predecessor is not over, and runs that are spread out."""

from datetime import timedelta

import pytest

from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.history import complete_history
from robust_queue.lifecycle.recur import recur
from robust_queue.lifecycle.remit import Remit
from robust_queue.lifecycle.retry import retry
from robust_queue.models import (
    BlockedExecution,
    Job,
    ReadyExecution,
    RecurringTask,
    Semaphore,
)
from robust_queue.testing import drain
from tests.support.recurring import MINUTE, NOON, due, history, instants, row
from tests.testapp.limited_tasks import one_by_account
from tests.testapp.tasks import explode

pytestmark = pytest.mark.django_db(transaction=True)


def fire(*minutes):
    return [recur("default", now=NOON + n * MINUTE) for n in minutes]


class TestAllowed:
    def test_both_are_ready(self):
        due()
        assert fire(0, 1) == [1, 1]
        assert ReadyExecution.objects.count() == 2


class TestSkipped:
    def test_the_later_one_is_left_out_and_says_why(self):
        due(overlap="skip")
        assert fire(0, 1) == [1, 0]
        job, entry = Job.objects.get(), history()[1]
        assert (entry.outcome, entry.run_at) == ("skipped", NOON + MINUTE)
        assert f"job {job.id}" in entry.reason

    def test_until_the_first_is_over(self):
        due(overlap="skip")
        fire(0, 1)
        drain()
        assert fire(2) == [1]
        assert instants() == [NOON, NOON + 2 * MINUTE]

    def test_also_if_it_has_failed_or_is_gone(self):
        due(overlap="skip", args=(1,))
        fire(0)
        discard("default", Job.objects.get().id)
        assert fire(1) == [1]

    def test_one_that_has_failed_and_was_sent_back_counts(self):
        due(explode, overlap="skip")
        fire(0)
        drain()
        assert list(complete_history("default")) == [None]
        retry("default", history()[0].job_id)
        assert fire(1) == [0]

    def test_of_several_that_were_missed_the_first_goes(self):
        due(overlap="skip", on_missed="run_all")
        assert fire(3) == [1]
        assert instants() == [NOON]
        assert [each.outcome for each in history()] == ["enqueued"] + ["skipped"] * 3

    def test_each_recurring_task_for_itself(self):
        due(key="a", overlap="skip")
        due(key="b", overlap="skip")
        assert fire(0, 1) == [2, 0]


class TestQueued:
    def test_the_later_one_waits_for_the_first(self):
        due(overlap="queue")
        assert fire(0, 1, 2) == [1, 1, 1]
        assert ReadyExecution.objects.count() == 1
        assert BlockedExecution.objects.count() == 2
        ids = [str(each.job_id) for each in history()]
        assert [each.id for each in drain()] == ids

    def test_in_one_line_for_each_recurring_task(self):
        due(key="a", overlap="queue")
        due(key="b", overlap="queue")
        fire(0, 1)
        assert ReadyExecution.objects.count() == 2

    def test_together_with_the_limits_of_the_task(self):
        due(one_by_account, args=("ada",), overlap="queue")
        one_by_account.enqueue("ada")
        fire(0)
        assert BlockedExecution.objects.count() == 1
        assert len(drain()) == 2
        assert {each.value for each in Semaphore.objects.all()} <= {1}

    def test_a_key_of_any_length(self):
        due(key="ü" * 255, overlap="queue")
        fire(0, 1)
        assert len(drain()) == 2


class TestJitter:
    def runs_at(self):
        return [each.run_after for each in Job.objects.all()]

    def test_spreads_what_is_due_at_the_same_instant(self):
        for n in range(20):
            due(key=f"k{n}", jitter=60)
        assert fire(0) == [20]
        found = set(self.runs_at())
        assert len(found) > 15
        assert NOON <= min(found) <= max(found) <= NOON + MINUTE
        assert instants("k3") == [NOON], "which is nominal"

    def test_is_the_same_whoever_asks(self):
        found = set()
        for _ in range(3):
            due(jitter=60)
            fire(0)
            found |= set(self.runs_at())
            for each in (*Job.objects.all(), row(), *history()):
                each.delete()
        assert len(found) == 1


class TestWhoseTurnItIs:
    """Of what stands in code or settings a scheduler fires what it declares itself."""

    def test_what_another_release_declares_is_left_to_that(self):
        due(key="mine")
        due(key="theirs")
        assert recur("default", now=NOON, remit=Remit({"mine"})) == 1
        assert instants("theirs") == []
        assert recur("default", now=NOON, remit=Remit({"theirs"})) == 1

    def test_what_was_made_at_run_time_is_everybodys(self):
        due()
        RecurringTask.objects.update(static=False)
        assert recur("default", now=NOON, remit=Remit(())) == 1


def test_a_long_outage_is_one_row_of_history():
    due(schedule="* * * * * *", on_missed="skip")
    assert recur("default", now=NOON + timedelta(days=30, minutes=5)) == 1
    left_out, run = history()
    assert left_out.skipped is None
    assert left_out.skipped_until == run.run_at - timedelta(seconds=1)
