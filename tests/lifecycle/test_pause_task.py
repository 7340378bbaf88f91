"""Paused tasks: no job of them begins, none is lost, none is left aside for ever."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from robust_queue.lifecycle import pause_task as module
from robust_queue.lifecycle.cancel import cancel
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.pause_task import (
    end_task_pauses,
    pause_task,
    paused_tasks,
    resume_task,
    set_aside,
)
from robust_queue.lifecycle.release import release
from robust_queue.models import ReadyExecution, ScheduledExecution, TaskPause
from robust_queue.testing import drain
from tests.support.invariants import state_of, states
from tests.support.processes import a_process
from tests.support.statements import statements
from tests.support.threads import in_thread, in_threads, started, uncommitted
from tests.testapp.tasks import mail, note

NOTE, MAIL = note.module_path, mail.module_path
HOUR = timedelta(hours=1)
BAD_PATHS = ["", "a" * 256, "shop\ntasks", None, 7]


def take(limit=100):
    return claim("default", process_id=a_process(), limit=limit)


def taken_and_set_aside(limit=100):
    return set_aside("default", take(limit), worker_id="w")


def is_aside(result):
    row = ScheduledExecution.objects.filter(pk=result.id).first()
    return row is not None and row.scheduled_at.year == 9000


def over(path=NOTE):
    """Its time is up."""
    TaskPause.objects.filter(pk=path).update(until=timezone.now())


@pytest.mark.django_db
class TestPausing:
    def test_no_job_begins_and_others_go_on(self, performed):
        for queue in ("default", "mail"):
            note.using(queue_name=queue).enqueue(queue)
        mail.enqueue("ada@example.org")
        assert pause_task("default", NOTE) is True
        drain()
        assert performed == [("mail", "ada@example.org")]
        assert resume_task("default", NOTE) is True
        drain()
        assert performed[1:] == [(("default",), {}), (("mail",), {})]

    def test_what_is_set_aside_has_used_up_no_attempt(self):
        result = note.enqueue()
        ReadyExecution.objects.update(attempts=3)
        pause_task("default", NOTE)
        assert taken_and_set_aside() == []
        assert state_of(result) == "scheduled"
        assert ScheduledExecution.objects.get().attempts == 3
        resume_task("default", NOTE)
        dispatch_due("default")
        (again,) = take()
        assert again.attempts == 4

    def test_the_order_of_the_others_stays(self):
        pause_task("default", MAIL)
        results = [
            each.enqueue(str(n)) for n in range(3) for each in (note, mail, note)
        ]
        wanted = [each.id for each in results if each.task.module_path == NOTE]
        assert [str(each.job_id) for each in taken_and_set_aside()] == wanted

    def test_what_is_said_last_counts(self):
        assert pause_task("default", NOTE, until=HOUR) is True
        assert pause_task("default", NOTE, until=2 * HOUR) is False
        assert TaskPause.objects.get().until > timezone.now() + HOUR
        assert pause_task("default", NOTE) is False
        assert TaskPause.objects.get().until is None
        over()
        assert paused_tasks("default") == set()
        assert pause_task("default", NOTE) is True
        assert paused_tasks("default") == {NOTE}

    def test_saying_it_twice(self):
        pause_task("default", NOTE)
        assert resume_task("default", NOTE) is True
        assert resume_task("default", NOTE) is False
        assert not TaskPause.objects.exists()

    def test_a_task_that_nobody_has_declared(self):
        """It may be declared elsewhere, or not yet, or not any more."""
        assert pause_task("default", "gone.tasks.vanished") is True
        assert resume_task("default", "gone.tasks.vanished") is True

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_nonsense_is_refused(self, path):
        for verb in (pause_task, resume_task):
            with pytest.raises(ValueError, match="path of a task"):
                verb("default", path)

    def test_the_callers_transaction_survives(self):
        pause_task("default", NOTE)
        with transaction.atomic():
            assert pause_task("default", NOTE) is False
            assert pause_task("default", MAIL) is True
        assert TaskPause.objects.count() == 2

    def test_a_job_that_is_aside_can_be_discarded_and_cancelled(self):
        first, second = note.enqueue(), note.enqueue()
        pause_task("default", NOTE)
        taken_and_set_aside()
        assert is_aside(first)
        assert is_aside(second)
        assert discard("default", first.id)
        assert cancel("default", second.id)
        assert resume_task("default", NOTE) is True
        assert list(states().values()) == ["failed"]

    def test_a_job_that_is_scheduled_for_later_stays_so(self):
        later = note.using(run_after=HOUR).enqueue()
        before = ScheduledExecution.objects.get().scheduled_at
        pause_task("default", NOTE)
        resume_task("default", NOTE)
        assert ScheduledExecution.objects.get(pk=later.id).scheduled_at == before


@pytest.mark.django_db
class TestTheSweep:
    def test_a_pause_that_is_over_is_ended(self):
        result = note.enqueue()
        pause_task("default", NOTE, until=HOUR)
        taken_and_set_aside()
        end = TaskPause.objects.get().until
        assert end_task_pauses("default") == end
        assert is_aside(result)
        over()
        assert end_task_pauses("default") is None
        assert not TaskPause.objects.exists()
        dispatch_due("default")
        assert state_of(result) == "ready"

    def test_it_goes_on_where_a_resume_has_died(self, monkeypatch):
        monkeypatch.setattr(module, "BATCH_SIZE", 2)
        results = [note.enqueue(n) for n in range(5)]
        pause_task("default", NOTE)
        taken_and_set_aside()
        steps, bring_back = [], module._bring_back

        def die_at_the_second(*args):
            if steps:
                raise KeyboardInterrupt
            steps.append(bring_back(*args))
            return steps[-1]

        monkeypatch.setattr(module, "_bring_back", die_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            resume_task("default", NOTE)
        monkeypatch.setattr(module, "_bring_back", bring_back)
        assert [is_aside(each) for each in results] == [False] * 2 + [True] * 3
        assert paused_tasks("default") == set()
        while end_task_pauses("default"):
            pass
        assert not any(map(is_aside, results))
        assert not TaskPause.objects.exists()

    def test_it_does_a_batch_at_a_time(self, monkeypatch):
        monkeypatch.setattr(module, "BATCH_SIZE", 2)
        results = [note.enqueue(n) for n in range(5)]
        pause_task("default", NOTE)
        taken_and_set_aside()
        over()
        assert end_task_pauses("default") is not None
        assert sum(map(is_aside, results)) == 3

    def test_the_row_of_a_pause_that_was_deleted_by_hand(self):
        lost, paused = note.enqueue(), mail.enqueue("ada@example.org")
        pause_task("default", NOTE)
        pause_task("default", MAIL)
        taken_and_set_aside()
        TaskPause.objects.filter(pk=NOTE).delete()
        end_task_pauses("default")
        assert not is_aside(lost)
        assert is_aside(paused)

    def test_of_many_one_task_is_found_without_looking_at_the_others(self):
        with statements() as found:
            assert end_task_pauses("default") is None
        assert len(found) == 2


@pytest.mark.django_db(transaction=True)
class TestRaces:
    """A worker believes that a task is paused; somebody resumes it meanwhile."""

    def test_the_resume_was_first(self):
        """The worker has asked before, and sets nothing aside."""
        result = note.enqueue()
        pause_task("default", NOTE)
        (claimed,) = take()
        in_thread(resume_task, "default", NOTE)
        assert set_aside("default", [claimed], worker_id="w") == [claimed]
        assert state_of(result) == "claimed"

    @pytest.mark.usefixtures("row_locks")
    def test_the_resume_waits_for_what_is_being_set_aside(self):
        result = note.enqueue()
        pause_task("default", NOTE)
        with uncommitted(taken_and_set_aside) as begun:
            assert begun == []
            resuming = started(resume_task, "default", NOTE)
        assert resuming.result(30) is True
        assert not is_aside(result)
        assert not TaskPause.objects.exists()

    @pytest.mark.usefixtures("row_locks")
    def test_who_sets_aside_waits_for_the_end_of_a_resume(self):
        result = note.enqueue()
        pause_task("default", NOTE)
        claims = take()
        with uncommitted(resume_task, "default", NOTE):
            setting = started(set_aside, "default", claims, worker_id="w")
        assert setting.result(30) == claims
        assert state_of(result) == "claimed"

    def test_a_worker_whose_clock_is_late(self, monkeypatch):
        """It takes the pause for in force while the row is there, and no longer."""
        result = note.enqueue()
        pause_task("default", NOTE)
        TaskPause.objects.update(until=timezone.now() + timedelta(seconds=0.01))
        claims = take()
        late = timezone.now() - HOUR
        while end_task_pauses("default"):
            pass
        monkeypatch.setattr(module.timezone, "now", lambda: late)
        assert set_aside("default", claims, worker_id="w") == claims
        assert state_of(result) == "claimed"

    def test_none_is_left_aside_whoever_pauses_resumes_and_works(self):
        results = [note.enqueue(n) for n in range(60)]

        def work():
            begun = []
            for _ in range(30):
                dispatch_due("default")
                begun += taken_and_set_aside(limit=4)
            return begun

        def operate():
            for _ in range(15):
                pause_task("default", NOTE)
                resume_task("default", NOTE)

        *begun, _ = in_threads([work, work, operate])
        resume_task("default", NOTE)
        assert not any(map(is_aside, results))
        ids = [each.job_id for claims in begun for each in claims]
        assert len(ids) == len(set(ids)), "no job is begun twice"
        assert len(states()) == 60

    def test_of_many_at_once_one_has_done_it(self):
        outcomes = in_threads([lambda: pause_task("default", NOTE)] * 4)
        assert sorted(outcomes) == [False, False, False, True]
        outcomes = in_threads([lambda: resume_task("default", NOTE)] * 4)
        assert sorted(outcomes) == [False, False, False, True]

    def test_a_claim_that_was_lost_meanwhile_is_not_set_aside(self):
        result = note.enqueue()
        pause_task("default", NOTE)
        (claimed,) = take()
        release("default", [claimed])
        assert set_aside("default", [claimed], worker_id="w") == []
        assert state_of(result) == "ready"
