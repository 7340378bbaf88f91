"""What becomes of claims when their process is gone, settled on real tables."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.models.signals import pre_delete
from django.utils import timezone

from robust_queue.compat import TaskResultStatus, signals
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.settle import settle
from robust_queue.models import (
    Attempt,
    FailedExecution,
    FinishedExecution,
    Process,
    ReadyExecution,
    ScheduledExecution,
)
from robust_queue.processes import undertaker
from robust_queue.processes.exits import ExitCode
from robust_queue.processes.forked import ForkedChild
from robust_queue.processes.page import Page
from robust_queue.processes.posts import Post
from robust_queue.processes.worker import Worker
from tests.support.invariants import state_of
from tests.support.processes import a_process
from tests.support.threads import in_thread, in_threads, started, uncommitted
from tests.testapp.process_tasks import fail, nothing, rest, rest_again

pytestmark = pytest.mark.django_db(transaction=True)

THRESHOLD = timedelta(minutes=5)
LONG_AGO = timedelta(minutes=10)


def a_child(exit_code=-9):
    """A child that was registered, has claimed, and is gone."""
    identity = uuid4()
    Process.objects.register("Worker", identity=identity)
    post = Post(database="default", actor=Worker, metadata="", make=None)
    return ForkedChild(
        post=post, pid=1234, identity=identity, page=Page(8), exit_code=exit_code
    )


def claimed_by(child, count=1):
    claims = claim("default", process_id=child.identity, limit=count)
    assert len(claims) == count
    for slot, each in enumerate(claims):
        child.page.reserve(slot, each)
    return claims


def silence(identity):
    Process.objects.filter(pk=identity).update(
        last_heartbeat_at=timezone.now() - LONG_AGO
    )


def prune():
    return undertaker.prune("default", threshold=THRESHOLD, spare=[])


class TestBury:
    def test_what_was_reserved_goes_back_untouched(self):
        result, child = nothing.enqueue(), a_child()
        claimed_by(child)
        undertaker.bury("default", child)
        assert state_of(result) == "ready"
        assert ReadyExecution.objects.get().attempts == 0

    def test_a_claim_that_the_page_does_not_know_goes_back(self):
        result, child = nothing.enqueue(), a_child()
        claim("default", process_id=child.identity)
        undertaker.bury("default", child)
        assert state_of(result) == "ready"

    def test_what_had_begun_fails(self):
        result, child = rest.enqueue("it", 1), a_child()
        claimed_by(child)
        child.page.start(0, runs_again=False)
        undertaker.bury("default", child)
        assert state_of(result) == "failed"
        failed = FailedExecution.objects.get()
        assert failed.exception_class == "robust_queue.processes.ProcessExitError"
        assert "killed by SIGKILL" in failed.message
        assert failed.worker_id == child.name

    def test_what_may_run_again_waits_for_its_backoff(self):
        result, child = rest_again.enqueue("it", 1), a_child()
        claimed_by(child)
        child.page.start(0, runs_again=True)
        undertaker.bury("default", child)
        assert state_of(result) == "scheduled"
        assert ScheduledExecution.objects.get().attempts == 1
        assert Attempt.objects.get().exception_class.endswith("ProcessExitError")

    @pytest.mark.parametrize("code", [ExitCode.QUIT, ExitCode.LEFT_BEHIND])
    def test_what_ran_in_a_dismissed_child_goes_back(self, code):
        result, child = rest.enqueue("it", 1), a_child(exit_code=code)
        claimed_by(child)
        child.page.start(0, runs_again=False)
        child.page.show_leaving()
        undertaker.bury("default", child)
        assert state_of(result) == "ready"
        assert ReadyExecution.objects.get().attempts == 0

    @pytest.mark.parametrize(
        ("task", "ends"), [(nothing, "finished"), (fail, "failed")]
    )
    def test_what_was_done_is_recorded_as_what_it_was(self, task, ends):
        arguments = ("it",) if task is fail else ()
        result, child = task.enqueue(*arguments), a_child()
        (one,) = claimed_by(child)
        child.page.start(0, runs_again=True)
        performed = perform(one, database="default", worker_id=child.name)
        child.page.finish(0, performed.outcome)
        undertaker.bury("default", child)
        assert state_of(result) == ends

    def test_what_was_settled_in_time_is_left_alone(self):
        result, child = nothing.enqueue(), a_child()
        (one,) = claimed_by(child)
        child.page.start(0, runs_again=False)
        performed = perform(one, database="default", worker_id=child.name)
        settle("default", [performed.outcome])
        undertaker.bury("default", child)
        assert state_of(result) == "finished"

    def test_a_poisoned_outcome_does_not_spoil_the_others(self):
        """One that the database refuses fails; its neighbours are recorded."""
        results, child = [nothing.enqueue() for _ in range(2)], a_child()
        for slot, one in enumerate(claimed_by(child, 2)):
            child.page.start(slot, runs_again=False)
            outcome = perform(one, database="default", worker_id="w").outcome
            if slot == 0:
                outcome = replace(outcome, result="\x00")
            child.page.finish(slot, outcome)
        undertaker.bury("default", child)
        refuses = connection.vendor == "postgresql"
        assert state_of(results[0]) == ("failed" if refuses else "finished")
        assert state_of(results[1]) == "finished"

    def test_a_claim_that_was_on_its_way_comes_to_nothing(self, row_locks):
        """The child was killed while the server still worked on its claim."""
        result, child = rest.enqueue("it", 1), a_child()
        with uncommitted(undertaker.bury, "default", child):
            late = started(claim, "default", process_id=child.identity)
        assert late.result(30) == []
        assert state_of(result) == "ready"

    def test_a_claim_that_came_just_before_the_burial_goes_back(self, row_locks):
        result, child = rest.enqueue("it", 1), a_child()
        with uncommitted(claim, "default", process_id=child.identity):
            burial = started(undertaker.bury, "default", child)
        burial.result(30)
        assert state_of(result) == "ready"

    def test_the_row_of_the_child_is_struck_off_and_no_other(self):
        child, sibling = a_child(), a_child()
        rest.enqueue("it", 1)
        (other,) = claimed_by(sibling)
        undertaker.bury("default", child)
        assert list(Process.objects.values_list("pk", flat=True)) == [sibling.identity]
        assert state_of(type("R", (), {"id": other.job_id})) == "claimed"

    def test_to_bury_twice_changes_nothing_more(self):
        result, child = rest.enqueue("it", 1), a_child()
        claimed_by(child)
        child.page.start(0, runs_again=False)
        undertaker.bury("default", child)
        undertaker.bury("default", child)
        assert state_of(result) == "failed"

    def test_listeners_hear_of_a_crash(self):
        heard = []

        def listen(sender, task_result, **kwargs):
            heard.append(task_result.status)

        signals.task_finished.connect(listen)
        try:
            rest.enqueue("it", 1)
            child = a_child()
            claimed_by(child)
            child.page.start(0, runs_again=False)
            undertaker.bury("default", child)
        finally:
            signals.task_finished.disconnect(listen)
        assert heard == [TaskResultStatus.FAILED]


class TestPrune:
    def test_claims_of_a_silent_process_meet_their_policy(self):
        failing, again, child = (
            rest.enqueue("a", 1),
            rest_again.enqueue("b", 1),
            a_child(),
        )
        claimed_by(child, 2)
        silence(child.identity)
        assert prune() == 1
        assert state_of(failing) == "failed"
        assert state_of(again) == "scheduled"
        error = FailedExecution.objects.get()
        assert error.exception_class == "robust_queue.processes.ProcessPrunedError"
        assert not Process.objects.exists()

    def test_those_who_were_heard_of_are_spared(self):
        result, child = rest.enqueue("it", 1), a_child()
        claimed_by(child)
        assert prune() == 0
        assert state_of(result) == "claimed"

    def test_the_supervisors_own_are_spared(self):
        child = a_child()
        silence(child.identity)
        spare = [child.identity]
        assert undertaker.prune("default", threshold=THRESHOLD, spare=spare) == 0

    def test_a_beat_just_before_the_end_saves(self, monkeypatch):
        """The list of the silent was read; then one of them is heard of."""
        result, child = rest.enqueue("it", 1), a_child()
        claimed_by(child)
        silence(child.identity)
        strike_off = undertaker._prune

        def beat_first(database, silent, threshold):
            in_thread(Process.objects.beat, child.identity)
            return strike_off(database, silent, threshold)

        monkeypatch.setattr(undertaker, "_prune", beat_first)
        assert prune() == 0
        assert state_of(result) == "claimed"

    def test_nobody_who_listens_to_deletions_comes_in_between(self):
        """Django would read the row, call them, and delete what it may have become."""
        child, heard = a_child(), []

        def listen(sender, **kwargs):
            heard.append(sender)

        silence(child.identity)
        pre_delete.connect(listen)
        try:
            assert prune() == 1
        finally:
            pre_delete.disconnect(listen)
        assert heard == []

    def test_a_beat_after_the_end_finds_nobody(self):
        child = a_child()
        silence(child.identity)
        prune()
        assert not Process.objects.beat(child.identity)

    def test_a_beat_that_is_not_committed_yet_is_waited_for(self, row_locks):
        """The process beats at the very moment: one of the two is right, not both."""
        result, child = rest.enqueue("it", 1), a_child()
        claimed_by(child)
        silence(child.identity)
        with uncommitted(Process.objects.beat, child.identity):
            pruning = started(prune)
        assert pruning.result(30) == 0
        assert state_of(result) == "claimed"

    def test_a_finisher_loses_against_the_pruner(self):
        result, child = rest.enqueue("it", 0), a_child()
        (one,) = claimed_by(child)
        performed = perform(one, database="default", worker_id=child.name)
        silence(child.identity)
        prune()
        assert settle("default", [performed.outcome]) == set()
        assert state_of(result) == "failed"

    def test_the_pruner_loses_against_a_finisher(self):
        result, child = rest.enqueue("it", 0), a_child()
        (one,) = claimed_by(child)
        performed = perform(one, database="default", worker_id=child.name)
        silence(child.identity)
        assert settle("default", [performed.outcome])
        prune()
        assert state_of(result) == "finished"
        assert FinishedExecution.objects.count() == 1

    def test_two_pruners_do_it_once(self):
        result, child = rest.enqueue("it", 1), a_child()
        claimed_by(child)
        silence(child.identity)
        assert sum(in_threads([prune, prune])) == 1
        assert state_of(result) == "failed"


class TestOrphans:
    def test_a_claim_of_nobody_fails(self):
        result = rest.enqueue("it", 1)
        claim("default", process_id=a_process())
        Process.objects.all().delete()
        assert undertaker.adopt_orphans("default") == 1
        error = FailedExecution.objects.get(pk=result.id)
        assert error.exception_class == "robust_queue.processes.ProcessMissingError"

    def test_claims_of_somebody_are_left_alone(self):
        result, child = rest.enqueue("it", 1), a_child()
        claimed_by(child)
        assert undertaker.adopt_orphans("default") == 0
        assert state_of(result) == "claimed"

    def test_inside_a_transaction_nothing_is_told_before_its_commit(self):
        rest.enqueue("it", 1)
        claim("default", process_id=a_process())
        Process.objects.all().delete()
        heard = []

        def listen(sender, task_result, **kwargs):
            heard.append(task_result.id)

        signals.task_finished.connect(listen)
        try:
            with transaction.atomic():
                undertaker.adopt_orphans("default")
                assert heard == []
        finally:
            signals.task_finished.disconnect(listen)
        assert len(heard) == 1
