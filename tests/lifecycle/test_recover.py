"""Claims of processes that are gone: read cheaply, and none of them stays for ever."""

import logging
from uuid import uuid4

import pytest

from robust_queue.compat import signals
from robust_queue.lifecycle import recover
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.release import release
from robust_queue.models import (
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    Process,
    ReadyExecution,
)
from tests.support import rows
from tests.support.invariants import states
from tests.support.statements import statements
from tests.testapp.tasks import note

pytestmark = pytest.mark.django_db(transaction=True)

CRASH = RuntimeError("the process died")


def a_process():
    return rows.process().pk


def claims(process_id, count=3):
    for _ in range(count):
        note.enqueue()
    return claim("default", process_id=process_id, limit=count)


def held_by(process_id):
    return recover.claims_of("default", process_id)


def give_up(held):
    return recover.give_up("default", held, CRASH, worker_id="w")


@pytest.fixture
def heard():
    """The ids of jobs that were told to have finished."""
    found = []

    def listen(sender, task_result, **kwargs):
        found.append(task_result.id)

    signals.task_finished.connect(listen)
    yield found
    signals.task_finished.disconnect(listen)


def test_a_claim_is_told_with_what_is_needed_of_its_job():
    process_id = a_process()
    (taken,) = claims(process_id, 1)
    (held,) = held_by(process_id)
    assert (held.job_id, held.token) == (taken.job_id, taken.token)
    assert (held.process_id, held.attempts) == (process_id, 1)
    assert held.task_path == note.module_path
    assert held.started_at == ClaimedExecution.objects.get().created_at
    assert recover.claims_of_nobody("default", limit=9) == []
    Process.objects.all().delete()
    assert recover.claims_of_nobody("default", limit=9) == [held]


def test_arguments_are_left_in_the_database():
    process_id = a_process()
    claims(process_id)
    with statements() as sent:
        assert len(held_by(process_id)) == 3
    assert len(sent) == 2
    assert not [sql for sql in sent if "arguments" in sql]


class TestJobless:
    """Somebody has deleted the row of a job that is claimed."""

    @pytest.fixture
    def bereaved(self):
        """A claim without a job, and another one with."""
        process_id = a_process()
        gone, there = claims(process_id, 2)
        Job.objects.filter(pk=gone.job_id)._raw_delete("default")
        return process_id, gone.job_id, there.job_id

    def test_such_a_claim_is_seen(self, bereaved):
        process_id, gone, there = bereaved
        paths = {each.job_id: each.task_path for each in held_by(process_id)}
        assert paths == {gone: "", there: note.module_path}
        Process.objects.all().delete()
        assert len(recover.claims_of_nobody("default", limit=9)) == 2

    def test_to_give_up_deletes_it(self, bereaved, caplog):
        process_id, gone, there = bereaved
        with caplog.at_level(logging.WARNING, "robust_queue"):
            assert give_up(held_by(process_id)) == {there}
        assert f"Job {gone} is gone" in caplog.text
        assert states() == {there: "failed"}

    def test_to_release_deletes_it(self, bereaved, caplog):
        """As a ready row it would be claimed again and again, and never run."""
        process_id, gone, there = bereaved
        assert release("default", held_by(process_id)) == {there}
        assert f"Job {gone} is gone" in caplog.text
        assert states() == {there: "ready"}

    def test_whoever_lost_the_claim_deletes_nothing(self, bereaved, caplog):
        process_id, gone, _ = bereaved
        held = held_by(process_id)
        ClaimedExecution.objects.update(token=uuid4())
        assert give_up(held) == set()
        assert ClaimedExecution.objects.filter(pk=gone).exists()
        assert "is gone" not in caplog.text


class TestNews:
    """What cannot be told of one job is no reason to keep the others back."""

    @pytest.fixture
    def unreadable(self, monkeypatch):
        """Makes a job one whose result cannot be read."""
        get_result = recover.results.get_result
        broken = set()

        def read(database, job_id):
            if job_id in broken:
                raise RuntimeError("cannot be read")
            return get_result(database, job_id)

        monkeypatch.setattr(recover.results, "get_result", read)
        return broken.add

    def test_of_crashes(self, unreadable, heard, caplog):
        process_id = a_process()
        taken = [each.job_id for each in claims(process_id)]
        unreadable(taken[0])
        give_up(held_by(process_id))
        assert FailedExecution.objects.count() == 3
        assert sorted(heard) == sorted(map(str, taken[1:]))
        assert f"told what became of job {taken[0]}" in caplog.text

    def test_of_ends(self, unreadable, heard, caplog):
        taken = claims(a_process())
        outcomes = [
            perform(each, database="default", worker_id="w").outcome for each in taken
        ]
        unreadable(taken[0].job_id)
        recover.record("default", outcomes)
        assert FinishedExecution.objects.count() == 3
        assert sorted(heard) == sorted(str(each.job_id) for each in taken[1:])
        assert f"told what became of job {taken[0].job_id}" in caplog.text

    def test_a_job_that_is_gone_by_then_is_told_by_the_log_alone(self, heard, caplog):
        recover._tell_of_ends("default", [uuid4()])
        assert heard == []
        assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_claims_of_others_are_left_alone():
    mine, theirs = a_process(), a_process()
    claims(mine, 1)
    claims(theirs, 1)
    give_up(held_by(mine))
    assert len(held_by(theirs)) == 1
    assert not ReadyExecution.objects.exists()
