"""Edit and re-run: a new job in the place of one that waits or has failed."""

import json
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.test import override_settings
from django.utils import timezone, translation

from robust_queue.compat import InvalidTask, signals
from robust_queue.exceptions import (
    DuplicateTaskError,
    PayloadTooLargeError,
    SerializationError,
    UnknownTaskError,
    UnreplaceableError,
)
from robust_queue.lifecycle import rerun as lifecycle_rerun
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.rerun import rerun
from robust_queue.lifecycle.retry import retry
from robust_queue.models import (
    Attempt,
    ClaimedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
    UniqueLock,
)
from robust_queue.testing import drain
from tests.support import rows
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.support.threads import in_threads, started, uncommitted
from tests.testapp.models import Customer
from tests.testapp.tasks import (
    add,
    attempt_number,
    explode,
    locale_around,
    note,
    rename,
)
from tests.testapp.unique_tasks import hourly, once

pytestmark = pytest.mark.django_db

BACKEND = "robust_queue.backend.RobustQueueBackend"


def failed(task=explode, *args, **kwargs):
    result = task.enqueue(*args, **kwargs)
    drain()
    assert states()[UUID(result.id)] == "failed"
    return result


def aliases(**entry):
    return {"default": {"BACKEND": BACKEND, "QUEUES": [], **entry}}


class TestWhatIsReplaced:
    def test_a_failed_job_runs_again_with_other_arguments(self):
        old = failed(add, 1, "one")
        new = rerun("default", old.id, args=[1, 1])
        assert new.id != old.id
        assert states() == {UUID(new.id): "ready"}
        assert [(r.id, r.return_value) for r in drain()] == [(new.id, 2)]

    def test_its_past_goes_with_it_and_attempts_begin_anew(self):
        old = failed()
        retry("default", old.id)
        drain()
        assert Attempt.objects.count() == 1
        new = rerun("default", old.id)
        assert not Attempt.objects.exists()
        assert ReadyExecution.objects.get().attempts == 0
        assert explode.get_result(new.id).errors == []

    @pytest.mark.parametrize("state", ["ready", "scheduled", "blocked", "failed"])
    def test_every_job_that_waits_or_has_failed(self, state):
        row = getattr(rows, state)()
        new = rerun("default", row.pk, queue_name="other")
        assert Job.objects.get().id == UUID(new.id)
        expected = "scheduled" if state == "scheduled" else "ready"
        assert states() == {UUID(new.id): expected}

    def test_no_job_that_runs(self):
        row = rows.claimed()
        with pytest.raises(UnreplaceableError, match=f"{row.pk} is claimed"):
            rerun("default", row.pk)
        assert states() == {row.pk: "claimed"}

    def test_an_unknown_job(self):
        with pytest.raises(UnreplaceableError, match="is gone"):
            rerun("default", uuid4())


class TestWhatHasFinished:
    def test_stays_beside_the_new_job(self):
        old = add.enqueue(1, 2)
        drain()
        new = rerun("default", old.id, args=[1, 3], queue_name="other")
        assert states() == {UUID(old.id): "finished", UUID(new.id): "ready"}
        remembered = json.loads(Job.objects.get(pk=new.id).metadata)
        assert remembered["rerun_of"] == old.id
        assert [(r.id, r.return_value) for r in drain()] == [(new.id, 4)]
        assert add.get_result(old.id).return_value == 3

    def test_may_run_anew_again_and_again(self):
        old = note.enqueue("x")
        drain()
        assert len({rerun("default", old.id).id for _ in range(3)}) == 3
        assert len(states()) == 4

    def test_of_a_schedule_is_no_run_of_it(self):
        """The one that has finished is: it is in the history as it went."""
        marked = '{"recurring_task":"k","language":"de"}'
        old = rows.finished(of=rows.job(metadata=marked))
        new = rerun("default", old.pk)
        remembered = json.loads(Job.objects.get(pk=new.id).metadata)
        assert remembered == {"language": "de", "rerun_of": str(old.pk)}

    def test_of_a_unique_task_begins_its_period_anew(self):
        old = hourly.enqueue("x")
        drain()
        new = rerun("default", old.id)
        assert UniqueLock.objects.get().job_id == UUID(new.id)

    def test_of_a_unique_task_gives_way_to_one_that_is_there(self):
        old = once.enqueue("x")
        drain()
        other = once.enqueue("x")
        with pytest.raises(DuplicateTaskError):
            rerun("default", old.id)
        assert {*states()} == {UUID(old.id), UUID(other.id)}

    def test_may_be_cleared_meanwhile(self, monkeypatch):
        row, prepared = rows.finished(), lifecycle_rerun._prepared

        def clear(*args):
            Job.objects.filter(pk=row.pk).delete()
            row.delete()
            return prepared(*args)

        monkeypatch.setattr(lifecycle_rerun, "_prepared", clear)
        new = rerun("default", row.pk)
        assert states() == {UUID(new.id): "ready"}


class TestWhatIsChanged:
    def test_nothing_but_what_is_given(self):
        old = failed(explode.using(queue_name="q", priority=7), "bang")
        new = rerun("default", old.id)
        job = Job.objects.get(pk=new.id)
        assert (job.task_path, job.queue_name, job.priority, job.backend) == (
            explode.module_path,
            "q",
            7,
            "default",
        )
        assert (new.args, new.kwargs) == (["bang"], {})
        assert job.arguments == '{"args":["bang"],"kwargs":{}}'

    def test_queue_and_priority(self):
        old = failed(explode.using(queue_name="q", priority=7))
        rerun("default", old.id, queue_name="urgent", priority=0)
        row = ReadyExecution.objects.get()
        assert (row.queue_name, row.priority) == ("urgent", 0)

    def test_arguments_by_position_and_by_name_are_changed_apart(self):
        old = failed(explode, "bang")
        new = rerun("default", old.id, args=[], kwargs={"message": "boom"})
        newer = rerun("default", new.id, args=[])
        assert (newer.args, newer.kwargs) == ([], {"message": "boom"})

    def test_the_moment(self):
        moment = timezone.now().replace(microsecond=0) + timedelta(days=1)
        new = rerun("default", failed().id, run_after=moment)
        assert ScheduledExecution.objects.get().scheduled_at == moment
        newer = rerun("default", new.id, args=["later"])
        assert ScheduledExecution.objects.get().scheduled_at == moment, "it stays"
        rerun("default", newer.id, run_after=timedelta(0))
        assert ReadyExecution.objects.exists()

    def test_arguments_that_are_no_json_stay_what_they_are(self):
        customer = Customer.objects.create(name="Ada")
        old = rename.enqueue(customer, "Grace")
        rerun("default", old.id, queue_name="q")
        assert [r.status for r in drain()] == ["SUCCESSFUL"]
        customer.refresh_from_db()
        assert customer.name == "Grace"

    def test_a_task_that_takes_its_context(self):
        old = attempt_number.enqueue(5)
        rerun("default", old.id, kwargs={"extra": 10}, args=[])
        assert [r.return_value for r in drain()] == [11]

    def test_the_new_job_remembers_the_old_one_and_its_enqueuer(self, settings):
        settings.TASKS = aliases(OPTIONS={"RESTORE_LANGUAGE": True})
        with translation.override("de"):
            old = locale_around.enqueue()
        with translation.override("fr"):
            new = rerun("default", old.id, queue_name="q")
        remembered = json.loads(Job.objects.get(pk=new.id).metadata)
        assert remembered == {"language": "de", "rerun_of": old.id}
        assert [r.return_value[0] for r in drain()] == ["de"]


class TestChecks:
    """As at an enqueue: whatever is wrong, the old job stays as it was."""

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"args": [1, 2, 3]}, TypeError),
            ({"kwargs": {"nonsense": 1}}, TypeError),
            ({"args": [lambda: None]}, SerializationError),
            ({"args": ["x" * 2_000_000]}, PayloadTooLargeError),
            ({"queue_name": "mail*"}, InvalidTask),
            ({"priority": 100_000}, InvalidTask),
        ],
    )
    def test_what_no_job_can_be_made_of(self, changes, error):
        old = failed()
        with pytest.raises(error):
            rerun("default", old.id, **changes)
        assert states() == {UUID(old.id): "failed"}

    def test_a_queue_that_the_alias_does_not_have(self):
        old = failed()
        with (
            override_settings(TASKS=aliases(QUEUES=["default", "mail"])),
            pytest.raises(InvalidTask),
        ):
            rerun("default", old.id, queue_name="nonsense")
        assert states() == {UUID(old.id): "failed"}

    def test_a_task_that_is_gone(self):
        row = rows.failed(rows.job(task_path="tests.testapp.tasks.gone"))
        with pytest.raises(UnknownTaskError):
            rerun("default", row.pk)
        assert states() == {row.pk: "failed"}


class TestOneWins:
    @pytest.fixture
    def overtaken(self, monkeypatch):
        """Between the look at the job and its replacement, somebody does this."""

        def overtake(by):
            inner = lifecycle_rerun._prepared

            def prepared(*args):
                monkeypatch.setattr(lifecycle_rerun, "_prepared", inner)
                by()
                return inner(*args)

            monkeypatch.setattr(lifecycle_rerun, "_prepared", prepared)

        return overtake

    @pytest.mark.parametrize(
        ("verb", "state"),
        [(retry, "ready"), (discard, "gone"), (rerun, "gone")],
        ids=["retry", "discard", "rerun"],
    )
    def test_against_another_operator(self, overtaken, verb, state):
        old = failed()
        overtaken(lambda: verb("default", old.id))
        with pytest.raises(UnreplaceableError, match=f"is {state}"):
            rerun("default", old.id, args=["mine"])
        assert Job.objects.count() == (0 if verb is discard else 1)
        assert not Job.objects.filter(arguments__contains="mine").exists()

    def test_against_a_claim(self, overtaken):
        old = note.enqueue()
        overtaken(lambda: claim("default", process_id=a_process()))
        with pytest.raises(UnreplaceableError, match="is claimed"):
            rerun("default", old.id, args=["mine"])
        assert states() == {UUID(old.id): "claimed"}

    def test_a_scheduled_job_that_has_become_ready_is_replaced(self, overtaken):
        row = rows.scheduled()

        def dispatch():
            rows.ready(row.job)
            row.delete()

        overtaken(dispatch)
        new = rerun("default", row.pk, run_after=timedelta(0))
        assert states() == {UUID(new.id): "ready"}

    @pytest.mark.usefixtures("row_locks")
    def test_it_waits_for_a_claim_and_then_loses(self):
        old = note.enqueue()
        claiming = uncommitted(claim, "default", process_id=a_process())
        with claiming:
            racing = started(rerun, "default", old.id)
        with pytest.raises(UnreplaceableError, match="claimed"):
            racing.result(30)
        assert str(ClaimedExecution.objects.get().job_id) == old.id

    @pytest.mark.usefixtures("row_locks")
    def test_a_claim_passes_over_what_is_being_replaced(self):
        old = note.enqueue()
        with uncommitted(rerun, "default", old.id, args=["new"]):
            assert claim("default", process_id=a_process()) == []
        (held,) = claim("default", process_id=a_process())
        assert "new" in held.arguments

    @pytest.mark.django_db(transaction=True)
    def test_of_several_one_replaces_a_job(self):
        for _ in range(5):
            old = failed()

            def attempt(verb, job_id=old.id):
                try:
                    return bool(verb("default", job_id))
                except UnreplaceableError:
                    return False

            *replaced, retried = in_threads(
                [lambda: attempt(rerun)] * 3 + [lambda: attempt(retry)]
            )
            # Whoever comes when it has been retried may still replace it.
            assert replaced.count(True) == 1 or (retried and not any(replaced))
            assert list(states().values()) == ["ready"]
            Job.objects.all().delete()


@pytest.mark.parametrize("is_inside_a_test_case", [True, False])
def test_the_new_job_is_announced_when_it_is_certain(request, is_inside_a_test_case):
    request.getfixturevalue("db" if is_inside_a_test_case else "transactional_db")
    heard = []

    def hear(task_result, **kwargs):
        heard.append((task_result.id, Job.objects.count()))

    old = note.enqueue()
    signals.task_enqueued.connect(hear)
    try:
        new = rerun("default", old.id)
        with pytest.raises(UnreplaceableError):
            rerun("default", old.id)
    finally:
        signals.task_enqueued.disconnect(hear)
    assert heard == [(new.id, 1)]
