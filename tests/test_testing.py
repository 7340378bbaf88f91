"""drain(): the queue of an application's tests."""

from datetime import timedelta

import pytest
from django.test import TestCase

from robust_queue.models import Process
from robust_queue.testing import drain
from tests.support.invariants import state_of, states
from tests.testapp.models import Customer
from tests.testapp.tasks import (
    add,
    attempt_number,
    break_another_database,
    break_the_transaction,
    create_customer,
    elsewhere,
    enqueue_again,
    explode,
    interrupt,
    leave,
    mail,
    note,
    recover_and_fail,
    recurse_for_ever,
    rename,
    return_a_function,
    save_twice,
    swallow_a_database_error,
    wrap_a_database_error,
)


class TestDrain(TestCase):
    databases = {"default", "other"}

    def test_runs_what_is_ready_and_returns_the_results(self):
        results = [add.enqueue(i, 1) for i in range(3)]
        assert [r.return_value for r in drain()] == [1, 2, 3]
        assert [r.id for r in results] == [str(job_id) for job_id in states()]
        assert set(states().values()) == {"finished"}

    def test_what_is_enqueued_meanwhile_is_run_too(self):
        enqueue_again.enqueue(3)
        assert len(drain()) == 4

    def test_a_task_that_enqueues_itself_for_ever(self):
        enqueue_again.enqueue(100)
        with pytest.raises(RuntimeError, match="enqueue itself"):
            drain(limit=10)
        assert sorted(states().values()) == ["finished"] * 10 + ["ready"]

    def test_what_is_not_due_waits(self):
        later = note.using(run_after=timedelta(hours=1)).enqueue()
        assert drain() == []
        assert state_of(later) == "scheduled"

    def test_only_some_queues(self):
        mail.enqueue("ada@example.org")
        note.enqueue()
        assert [r.task.queue_name for r in drain("mail")] == ["mail"]
        assert len(drain()) == 1

    def test_another_database(self):
        elsewhere.enqueue(1)
        assert drain() == []
        assert len(drain(database="other")) == 1

    def test_models_arrive_alive(self):
        customer = Customer.objects.create(name="Ada")
        rename.enqueue(customer, "Grace")
        drain()
        customer.refresh_from_db()
        assert customer.name == "Grace"

    def test_a_model_that_is_gone_fails_the_job(self):
        customer = Customer.objects.create(name="Ada")
        result = rename.enqueue(customer, "Grace")
        customer.delete()
        drain()
        result.refresh()
        assert result.status == "FAILED"
        assert "DeserializationError" in result.errors[0].exception_class_path

    def test_the_context(self):
        attempt_number.enqueue(extra=10)
        assert [r.return_value for r in drain()] == [11]

    def test_every_kind_of_exception_is_contained(self):
        for task in (explode, leave, recurse_for_ever, return_a_function):
            task.enqueue()
        raised = [r.errors[0].exception_class for r in drain()]
        assert raised == [ValueError, SystemExit, RecursionError, TypeError]

    def test_an_interrupt_is_recorded_and_stops_the_tests(self):
        result = interrupt.enqueue()
        with pytest.raises(KeyboardInterrupt):
            drain()
        assert state_of(result) == "failed"

    def test_a_broken_transaction_does_not_break_the_test(self):
        broken = break_the_transaction.enqueue()
        wrap_a_database_error.enqueue()
        save_twice.enqueue("Ada")
        break_another_database.enqueue()
        add.enqueue(1, 1)
        assert [r.status for r in drain()] == ["FAILED"] * 4 + ["SUCCESSFUL"]
        assert state_of(broken) == "failed"
        assert Customer.objects.count() == 0
        assert states("other") == {}

    def test_a_task_that_swallows_an_error_of_the_database(self):
        swallow_a_database_error.enqueue("Ada")
        assert [r.return_value for r in drain()] == ["swallowed"]

    def test_what_a_failing_task_has_written_stays_as_in_production(self):
        recover_and_fail.enqueue("Ada")
        assert [r.status for r in drain()] == ["FAILED"]
        assert Customer.objects.get().name == "Ada"

    def test_a_model_as_a_result(self):
        create_customer.enqueue("Ada")
        (done,) = drain()
        assert done.return_value == Customer.objects.get()

    def test_it_leaves_no_process_behind(self):
        drain()
        assert not Process.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_outside_of_a_test_transaction_too():
    add.enqueue(2, 2)
    explode.enqueue()
    assert [r.status for r in drain()] == ["SUCCESSFUL", "FAILED"]
    assert sorted(states().values()) == ["failed", "finished"]


@pytest.mark.django_db
def test_jobs_that_are_not_to_be_kept(settings):
    settings.ROBUST_QUEUE = {"preserve_finished_jobs": False}
    add.enqueue(1)
    explode.enqueue()
    drain()
    assert list(states().values()) == ["failed"]
