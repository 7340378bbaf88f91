"""How runs of recurring tasks have ended, for longer than their jobs are kept."""

import pytest
from django.utils import timezone

from robust_queue.lifecycle.clear import Choice, clear
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.history import complete_history
from robust_queue.lifecycle.recur import recur
from robust_queue.lifecycle.retry import retry
from robust_queue.models import Job
from robust_queue.testing import drain
from tests.support.recurring import MINUTE, NOON, due, history
from tests.testapp import tasks

pytestmark = pytest.mark.django_db(transaction=True)


def run(*args, **options):
    due(*args, **options)
    recur("default", now=NOON)
    drain()


def complete():
    for _ in complete_history("default"):
        pass
    return history()[0]


def test_a_success():
    run(args=(1,))
    entry = complete()
    assert entry.outcome == "succeeded"
    assert entry.started_at <= entry.finished_at
    assert entry.duration == entry.finished_at - entry.started_at


def test_a_failure_and_its_kind():
    run(tasks.explode)
    entry = complete()
    assert (entry.outcome, entry.exception_class) == ("failed", "builtins.ValueError")


def test_a_failure_that_is_made_good():
    run(tasks.explode)
    complete()
    retry("default", history()[0].job_id)
    assert complete().outcome == "enqueued"
    Job.objects.update(task_path=tasks.note.module_path)
    Job.objects.update(arguments='{"args": [1], "kwargs": {}}')
    drain()
    entry = complete()
    assert (entry.outcome, entry.exception_class) == ("succeeded", "")


def test_one_that_runs_or_waits_is_left_alone():
    due()
    recur("default", now=NOON)
    assert complete().outcome == "enqueued"


def test_one_that_was_discarded():
    due()
    recur("default", now=NOON)
    discard("default", history()[0].job_id)
    assert complete().outcome == "gone"


@pytest.mark.parametrize(("task", "outcome"), [(None, "succeeded"), (1, "failed")])
def test_is_known_before_a_job_is_cleared(task, outcome):
    run(*([tasks.explode] if task else []))
    state = "failed" if task else "finished"
    assert clear("default", state, Choice(finished_before=timezone.now())) == 1
    assert history()[0].outcome == outcome


class TestJobsThatNobodyKeeps:
    @pytest.fixture(autouse=True)
    def keeps_nothing(self, settings):
        settings.ROBUST_QUEUE = {"preserve_finished_jobs": False}

    def test_are_kept_until_their_end_is_known(self):
        run(args=(1,))
        assert Job.objects.count() == 1
        assert complete().outcome == "succeeded"
        assert not Job.objects.exists()

    def test_others_are_not(self):
        tasks.note.enqueue(1)
        drain()
        assert not Job.objects.exists()


def test_is_completed_in_batches(monkeypatch):
    monkeypatch.setattr("robust_queue.lifecycle.history.BATCH_SIZE", 2)
    due()
    for n in range(5):
        recur("default", now=NOON + n * MINUTE)
    drain()
    assert sum(1 for _ in complete_history("default")) == 3
    assert {each.outcome for each in history()} == {"succeeded"}
