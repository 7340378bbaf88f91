"""Recurring tasks that cannot be enqueued, and databases that have trouble."""

import pytest
from django.db import OperationalError, transaction

from robust_queue.lifecycle import recur as lifecycle_recur
from robust_queue.lifecycle.recur import recur
from robust_queue.models import Job, RecurringExecution, RecurringTask
from robust_queue.stores import store_for
from tests.support.recurring import MINUTE, NOON, due, history, instants, row

pytestmark = pytest.mark.django_db(transaction=True)


class TestWhatCannotBeEnqueued:
    def expect_to_go_on(self, caplog, *said, now=NOON):
        due(key="sound", args=(1,))
        assert recur("default", now=now) == 1
        for text in ("'k'", *said):
            assert text in caplog.text
        assert row().next_run_at == now + MINUTE
        assert instants() == []
        assert instants("sound") == [now]
        refused = history()[-1]
        assert (refused.outcome, refused.run_at) == ("refused", now)
        assert said[-1] in refused.reason

    def test_a_task_that_is_gone(self, caplog):
        due()
        RecurringTask.objects.update(task_path="tests.testapp.recurring_tasks.gone")
        words = ("No task", "recurring_tasks.gone")
        self.expect_to_go_on(caplog, *words, now=NOON + 5 * MINUTE)

    def test_a_task_that_another_release_may_know(self, caplog):
        due()
        RecurringTask.objects.update(task_path="tests.testapp.recurring_tasks.new")
        due(key="sound")
        assert recur("default", now=NOON + MINUTE) == 1
        assert instants("sound") == [NOON + MINUTE]
        assert (history(), row().next_run_at, caplog.text) == ([], NOON, "")

    def test_however_many_these_are_the_others_have_their_turn(self, monkeypatch):
        monkeypatch.setattr(lifecycle_recur, "BATCH_SIZE", 2)
        for n in range(5):
            due(key=f"a{n}")
        RecurringTask.objects.update(task_path="tests.testapp.recurring_tasks.new")
        due(key="sound")
        assert recur("default", now=NOON) == 1

    @pytest.mark.parametrize(
        "text", ["", "{", '{"args": [{"$type": "x"}], "kwargs": {}}']
    )
    def test_arguments_that_cannot_be_read(self, caplog, text):
        due()
        RecurringTask.objects.update(arguments=text)
        self.expect_to_go_on(caplog, "DeserializationError")

    def test_arguments_that_do_not_fit_any_more(self, caplog):
        due()
        RecurringTask.objects.update(arguments='{"args": [1, 2], "kwargs": {}}')
        self.expect_to_go_on(caplog, "too many positional arguments")

    def test_a_queue_that_has_no_proper_name(self, caplog):
        due()
        RecurringTask.objects.update(queue_name="*")
        self.expect_to_go_on(caplog, "InvalidTask")

    def test_rows_that_the_database_refuses(self, caplog, monkeypatch):
        """An error that would come again is one of the task, not of the database."""
        due(args=(13,))
        store = type(store_for("default"))
        insert = store.insert

        def insert_twice(self, jobs):
            insert(self, jobs)
            if "13" in jobs[0].arguments:
                insert(self, jobs)

        monkeypatch.setattr(store, "insert", insert_twice)
        self.expect_to_go_on(caplog, "IntegrityError", "EnqueueError")
        assert Job.objects.count() == 1

    def test_a_schedule_that_nobody_understands(self, caplog):
        due()
        RecurringTask.objects.update(schedule="whenever")
        assert recur("default", now=NOON + MINUTE) == 0, "a newer release might"
        assert recur("default", now=NOON + 5 * MINUTE) == 1
        assert row().next_run_at is None
        assert "'k' has no sensible schedule" in caplog.text
        assert recur("default", now=NOON + 6 * MINUTE) == 0


class TestDatabaseTrouble:
    def failing(self, monkeypatch, marker):
        store = type(store_for("default"))
        insert = store.insert

        def fail(self, jobs):
            if marker in jobs[0].arguments:
                raise OperationalError("the server closed the connection")
            return insert(self, jobs)

        monkeypatch.setattr(store, "insert", fail)

    def test_is_raised_and_the_instant_stays_due(self, monkeypatch):
        due(args=(13,))
        self.failing(monkeypatch, "13")
        with pytest.raises(OperationalError, match="closed the connection"):
            recur("default", now=NOON)
        assert row().next_run_at == NOON
        assert instants() == []
        monkeypatch.undo()
        assert recur("default", now=NOON) == 1

    def test_of_one_task_does_not_keep_the_others_waiting(self, monkeypatch):
        due(key="a", args=(13,))
        due(key="b", args=(1,))
        self.failing(monkeypatch, "13")
        with pytest.raises(OperationalError):
            recur("default", now=NOON)
        assert (instants("a"), instants("b")) == ([], [NOON])

    def test_of_the_connection_ends_the_round(self, monkeypatch):
        due(key="a", args=(13,))
        due(key="b", args=(1,))
        self.failing(monkeypatch, "13")
        monkeypatch.setattr(lifecycle_recur, "_is_out_of_reach", lambda database: True)
        with pytest.raises(OperationalError):
            recur("default", now=NOON)
        assert instants("b") == []

    def test_job_and_instant_vanish_together(self, monkeypatch):
        due()
        manager = type(RecurringExecution.objects.using("default"))

        def fail(*args, **kwargs):
            assert Job.objects.count() == 1
            raise OperationalError("no space left")

        monkeypatch.setattr(manager, "bulk_create", fail)
        with pytest.raises(OperationalError, match="no space left"):
            recur("default", now=NOON)
        assert not Job.objects.exists()
        assert row().next_run_at == NOON

    def test_everything_vanishes_with_the_transaction_around_it(self):
        due()
        with transaction.atomic():
            assert recur("default", now=NOON) == 1
            transaction.set_rollback(True)
        assert not Job.objects.exists()
        assert (instants(), row().next_run_at) == ([], NOON)
