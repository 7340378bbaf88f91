"""When an enqueue becomes real: rule by rule."""

from contextlib import contextmanager

import pytest
from django.db import connections, transaction
from django.test import TestCase

from robust_queue import enqueue_all
from robust_queue.compat import signals
from robust_queue.exceptions import EnqueueError
from robust_queue.models import Job, ReadyExecution
from tests.support.invariants import states
from tests.testapp.models import Customer
from tests.testapp.tasks import at_once, elsewhere, note

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])


class Abandoned(Exception):
    pass


@pytest.fixture
def announced():
    """The ids of the jobs that ``task_enqueued`` has told of."""
    told = []

    def remember(sender, task_result, **kwargs):
        told.append(task_result.id)

    signals.task_enqueued.connect(remember)
    yield told
    signals.task_enqueued.disconnect(remember)


def stored(using="default"):
    return sorted(str(job_id) for job_id in states(using))


@contextmanager
def broken(using):
    """The queue's table is gone, as after a migration that was forgotten."""
    _rename("robust_queue_ready_executions", "robust_queue_hidden", using)
    try:
        yield
    finally:
        _rename("robust_queue_hidden", "robust_queue_ready_executions", using)


def _rename(old, new, using):
    with connections[using].cursor() as cursor:
        cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")


class TestTheSameDatabase:
    def test_rows_are_part_of_the_transaction(self):
        with transaction.atomic():
            result = note.enqueue()
            assert stored() == [result.id]

    def test_a_rollback_leaves_no_trace(self, announced):
        with pytest.raises(Abandoned), transaction.atomic():
            Customer.objects.create(name="Ada")
            note.enqueue()
            at_once.enqueue()
            enqueue_all([note.bind(1), note.bind(2)])
            raise Abandoned
        assert stored() == []
        assert len(announced) == 1, "only the one that was told at once"

    def test_a_savepoint_takes_its_jobs_along(self, announced):
        with transaction.atomic():
            kept = note.enqueue()
            with pytest.raises(Abandoned), transaction.atomic():
                note.enqueue()
                raise Abandoned
            with transaction.atomic():
                nested = note.enqueue()
        assert stored() == sorted([kept.id, nested.id])
        assert announced == [kept.id, nested.id]

    def test_the_signal_waits_for_the_commit(self, announced):
        with transaction.atomic():
            result = note.enqueue()
            assert announced == []
        assert announced == [result.id]

    def test_unless_the_task_says_otherwise(self, announced):
        with transaction.atomic():
            result = note.using(enqueue_on_commit=False).enqueue()
            assert announced == [result.id]
        assert announced == [result.id]

    def test_without_a_transaction_everything_happens_at_once(self, announced):
        result = note.enqueue()
        assert (stored(), announced) == ([result.id], [result.id])

    def test_in_manual_transaction_management_the_rows_belong_to_it(self):
        transaction.set_autocommit(False)
        try:
            note.enqueue()
            transaction.rollback()
        finally:
            transaction.set_autocommit(True)
        assert stored() == []


class TestAnotherDatabase:
    def test_the_job_waits_for_the_applications_commit(self, announced):
        with transaction.atomic():
            result = elsewhere.enqueue()
            assert stored("other") == []
            assert announced == []
        assert stored("other") == [result.id]
        assert announced == [result.id]

    def test_a_rollback_leaves_no_trace(self):
        with pytest.raises(Abandoned), transaction.atomic():
            elsewhere.enqueue()
            raise Abandoned
        assert stored("other") == []

    def test_a_savepoint_takes_its_jobs_along(self):
        with transaction.atomic():
            kept = elsewhere.enqueue()
            with pytest.raises(Abandoned), transaction.atomic():
                elsewhere.enqueue()
                raise Abandoned
        assert stored("other") == [kept.id]

    def test_at_once_if_the_call_says_so(self):
        with pytest.raises(Abandoned), transaction.atomic():
            result = elsewhere.using(enqueue_on_commit=False).enqueue()
            assert stored("other") == [result.id]
            raise Abandoned
        assert stored("other") == [result.id]

    def test_inside_a_transaction_of_the_queues_own_database(self):
        with transaction.atomic(using="other"):
            elsewhere.enqueue()
            assert len(stored("other")) == 1
            transaction.set_rollback(True, using="other")
        assert stored("other") == []

    def test_a_failing_hook_of_another_app_does_not_drop_the_job(self):
        def fail():
            raise Abandoned

        with pytest.raises(Abandoned), transaction.atomic():
            transaction.on_commit(fail)
            results = [elsewhere.enqueue(), elsewhere.enqueue()]
        assert stored("other") == sorted(result.id for result in results)

    def test_a_failing_enqueue_does_not_drop_the_hooks_of_other_apps(self):
        run = []
        with broken("other"), pytest.raises(EnqueueError), transaction.atomic():
            transaction.on_commit(lambda: run.append("before"))
            elsewhere.enqueue()
        assert run == ["before"]
        assert stored("other") == []

    def test_many_waiting_jobs_are_written_in_order(self, announced):
        with transaction.atomic():
            transaction.on_commit(lambda: None)
            results = [elsewhere.enqueue(i) for i in range(200)]
        assert stored("other") == sorted(result.id for result in results)
        assert announced == [result.id for result in results]

    def test_which_transactions_count_is_an_option(self, settings):
        options = {"DATABASE": "other", "TRANSACTION_DATABASES": []}
        settings.TASKS = {
            **settings.TASKS,
            "other": {**settings.TASKS["other"], "OPTIONS": options},
        }
        with transaction.atomic():
            result = elsewhere.enqueue()
            assert stored("other") == [result.id]

    def test_bulk_goes_where_each_task_belongs(self):
        with transaction.atomic():
            here, there = enqueue_all([note.bind(), elsewhere.bind()])
            assert (stored(), stored("other")) == ([here.id], [])
        assert stored("other") == [there.id]

    def test_results_are_read_where_they_were_written(self):
        result = elsewhere.enqueue(7)
        assert elsewhere.get_result(result.id) == result


class TestErrors:
    @pytest.fixture
    def broken_table(self):
        with broken("default"):
            yield

    @pytest.mark.usefixtures("broken_table")
    def test_a_database_error_is_an_enqueue_error(self):
        with pytest.raises(
            EnqueueError, match=r"tasks\.note in database 'default'"
        ) as caught:
            note.enqueue()
        assert caught.value.__cause__ is not None
        assert "transaction is broken" not in str(caught.value)
        assert not Job.objects.exists()

    @pytest.mark.usefixtures("broken_table")
    def test_in_a_transaction_it_says_what_has_become_of_that(self):
        with transaction.atomic():
            with pytest.raises(EnqueueError, match="transaction is broken"):
                note.enqueue()
            with pytest.raises(transaction.TransactionManagementError):
                Customer.objects.create(name="Ada")
            transaction.set_rollback(True)
        assert not Job.objects.exists()

    @pytest.mark.usefixtures("broken_table")
    def test_an_atomic_block_of_its_own_lets_the_caller_go_on(self):
        with transaction.atomic():
            with pytest.raises(EnqueueError), transaction.atomic():
                note.enqueue()
            Customer.objects.create(name="Ada")
        assert Customer.objects.count() == 1
        assert not Job.objects.exists()

    @pytest.mark.usefixtures("broken_table")
    def test_many_jobs_or_none(self):
        with pytest.raises(EnqueueError, match="3 jobs"):
            enqueue_all(note.bind(i) for i in range(3))
        assert not Job.objects.exists()


class TestInsideATestCase(TestCase):
    """Django's TestCase keeps a transaction open that no code asked for."""

    databases = {"default", "other"}

    def test_a_job_in_another_database_does_not_wait_for_ever(self):
        result = elsewhere.enqueue()
        assert stored("other") == [result.id]

    def test_a_transaction_of_the_code_under_test_still_counts(self):
        with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
            result = elsewhere.enqueue()
            assert stored("other") == []
        assert stored("other") == [result.id]

    def test_captured_hooks_are_run_once_each_whatever_came_before(self):
        run = []
        transaction.on_commit(lambda: run.append("registered before"))
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            with transaction.atomic():
                transaction.on_commit(elsewhere.enqueue)
            with transaction.atomic():
                elsewhere.enqueue()
        assert run == []
        assert len(callbacks) == 2
        assert len(stored("other")) == 2

    def test_the_signal_is_sent(self):
        told = []

        def remember(sender, task_result, **kwargs):
            told.append(task_result.id)

        signals.task_enqueued.connect(remember)
        try:
            result = note.enqueue()
        finally:
            signals.task_enqueued.disconnect(remember)
        assert told == [result.id]
        assert ReadyExecution.objects.count() == 1
