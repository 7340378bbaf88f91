"""What is written about jobs and processes: once, and with what people look for."""

import logging
from contextlib import suppress
from datetime import timedelta

import django
import pytest
from django.utils import timezone

from robust_queue.compat import task_backends, task_logger
from robust_queue.lifecycle import recover
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.pause import pause, resume
from robust_queue.logs import lines, take_over
from robust_queue.signals import (
    ProcessFacts,
    process_exited,
    process_replaced,
    process_started,
    process_stopping,
    tell,
)
from robust_queue.testing import drain
from tests.support.processes import a_process
from tests.support.receivers import frameworks_kept
from tests.testapp import backported
from tests.testapp.tasks import add, explode, mail, succeed_at_last

ADD = "tests.testapp.tasks.add"
IS_DJANGOS = django.VERSION >= (6, 0)


@pytest.fixture
def taken_over():
    with frameworks_kept():
        take_over()
        yield


@pytest.fixture
def told(caplog, taken_over):
    """What has been written about jobs since the test began."""
    caplog.set_level(logging.DEBUG, task_logger.name)

    def read(level=logging.INFO):
        names = ("django.tasks", "django_tasks")
        found = [each for each in caplog.records if each.name in names]
        return [each for each in found if each.levelno >= level]

    return read


def test_the_logger_is_that_of_the_framework():
    assert task_logger.name == ("django.tasks" if IS_DJANGOS else "django_tasks")


@pytest.mark.django_db
class TestJobs:
    @pytest.fixture
    def crash(self, django_capture_on_commit_callbacks):
        """Takes all that is ready, and is killed; returns why."""

        def be_killed():
            process_id, error = a_process(), RuntimeError("killed")
            claim("default", process_id=process_id)
            with django_capture_on_commit_callbacks(execute=True):
                held = recover.claims_of("default", process_id)
                recover.give_up("default", held, error, worker_id="worker-1")
            return error

        return be_killed

    def test_one_that_succeeds_has_one_line(self, told):
        result = add.enqueue(1)
        drain()
        (line,) = told()
        assert (line.name, line.levelname) == (task_logger.name, "INFO")
        text = line.getMessage()
        assert text.startswith(f"{ADD} succeeded in ")
        assert " ms after waiting " in text
        assert text.endswith(f"(job {result.id}, queue default, attempt 1)")

    def test_one_that_starts_has_one_for_developers(self, told):
        result = add.enqueue(1)
        drain()
        line, *_ = [each for each in told(logging.DEBUG) if "enqueued" not in each.msg]
        assert line.levelname == "DEBUG"
        assert line.getMessage().startswith(f"{ADD} started after waiting ")
        assert line.job_id == result.id
        assert line.wait >= 0
        assert not hasattr(line, "duration")

    def test_one_that_fails_has_its_traceback(self, told):
        result = explode.enqueue("no\nsuch order")
        drain()
        (line,) = told()
        assert line.levelname == "ERROR"
        text = line.getMessage()
        begins = "tests.testapp.tasks.explode failed with ValueError: no such order in "
        assert text.startswith(begins)
        assert text.endswith(f"(job {result.id}, queue default, attempt 1)")
        assert line.exc_info[0] is ValueError
        assert "raise ValueError(message)" in logging.Formatter().format(line)

    def test_the_record_carries_what_the_line_says(self, told):
        result = mail.using(queue_name="letters").enqueue("ada@example.org")
        drain()
        (line,) = told()
        assert line.job_id == result.id
        assert line.task == "tests.testapp.tasks.mail"
        assert (line.queue, line.attempt) == ("letters", 1)
        assert 0 <= line.duration < 60
        assert 0 <= line.wait < 60

    def test_waiting_begins_when_the_job_is_due(self, told):
        minute = timedelta(minutes=1)
        now = timezone.now()
        result = add.enqueue(1)
        for name, value in (
            ("enqueued_at", now - 3 * minute),
            ("last_attempted_at", now),
            ("finished_at", now + timedelta(milliseconds=1500)),
            ("status", "SUCCESSFUL"),
        ):
            object.__setattr__(result, name, value)
        lines.log_task_finished(object, task_result=result)
        object.__setattr__(result, "task", add.using(run_after=now - minute))
        lines.log_task_finished(object, task_result=result)
        object.__setattr__(result, "task", add.using(run_after=now + minute))
        lines.log_task_finished(object, task_result=result)
        assert [each.wait for each in told()] == [180.0, 60.0, 0.0]
        assert "succeeded in 1.5 s after waiting 3 min (" in told()[0].getMessage()

    def test_an_attempt_that_another_one_follows_is_a_warning(self, told):
        succeed_at_last.enqueue()
        drain()
        (line,) = told()
        assert line.levelname == "WARNING"
        assert line.attempt == 1
        assert line.duration >= 0
        assert "; next attempt at " in line.getMessage()

    def test_so_is_one_that_ended_with_its_process(self, told, crash):
        result = succeed_at_last.enqueue()
        error = crash()
        (line,) = told()
        assert line.levelname == "WARNING"
        assert " failed with RuntimeError: killed in " in line.getMessage()
        assert result.id in line.getMessage()
        assert line.exc_info[1] is error, "whoever reads DEBUG wants to see it"

    def test_one_that_fails_with_its_process_is_told_once(self, told, crash, caplog):
        add.enqueue(1)
        crash()
        (line,) = told()
        assert line.levelname == "ERROR"
        assert " failed with RuntimeError: killed in " in line.getMessage()
        assert [each.name for each in caplog.records if each.levelno > 20] == [
            line.name
        ]

    def test_nothing_is_made_up_that_nobody_reads(self, told, caplog, monkeypatch):
        def fail(*args, **kwargs):
            raise AssertionError

        monkeypatch.setattr(lines, "_facts", fail)
        caplog.set_level(logging.CRITICAL, task_logger.name)
        add.enqueue(1), explode.enqueue(), succeed_at_last.enqueue()
        drain()
        assert [each for each in caplog.records if each.name == "robust_queue"] == []

    def test_to_take_over_twice_changes_nothing(self, told):
        take_over()
        add.enqueue(1)
        drain()
        assert len(told()) == 1

    def test_an_error_that_cannot_be_shown(self, told, caplog):
        class UntellableError(Exception):
            def __str__(self):
                raise RuntimeError("no words")

        result = add.enqueue(1)
        object.__setattr__(result, "status", "FAILED")
        with suppress(UntellableError):
            try:
                raise UntellableError
            finally:
                lines.log_task_finished(object, task_result=result)
        (line,) = told()
        assert "UntellableError in an unknown time" in line.getMessage()

    def test_without_an_error_at_hand_its_class_will_do(self, told):
        failed = explode.enqueue()
        drain()
        lines.log_task_finished(object, task_result=explode.get_result(failed.id))
        assert "failed with ValueError in " in told()[-1].getMessage()


@pytest.mark.django_db
@pytest.mark.skipif(not IS_DJANGOS, reason="before 6.0 it is the framework")
class TestBackport:
    def test_a_task_of_the_backport_has_one_line(self, told):
        result = backported.greet.enqueue("World")
        drain()
        (line,) = told()
        assert line.name == "django.tasks"
        assert result.id in line.getMessage()

    def test_what_runs_in_a_backend_of_the_backport_is_left_to_it(self, told, caplog):
        caplog.set_level(logging.INFO, "django_tasks")
        take_over()
        backported.immediate.enqueue(1)
        started, finished = told()
        assert {started.name, finished.name} == {"django_tasks"}
        assert finished.getMessage().endswith("state=SUCCESSFUL")


@pytest.mark.django_db
def test_tasks_of_other_backends_are_written_in_the_same_way(told):
    immediate = task_backends["immediate"]
    result = add.using(backend=immediate.alias).enqueue(1)
    (line,) = told()
    assert line.getMessage().endswith(f"(job {result.id}, queue default, attempt 1)")


class Actor:
    pass


def a_worker(**details):
    facts = {"kind": "Worker", "name": "worker-1", "pid": -1, "database": "default"}
    return ProcessFacts(**facts, details=details)


class TestProcesses:
    @pytest.fixture
    def log(self, caplog):
        caplog.set_level(logging.DEBUG, "robust_queue")
        return lambda: [(each.levelname, each.getMessage()) for each in caplog.records]

    def test_from_the_start_to_the_end(self, log):
        worker = a_worker(queues=["mail*", "*"], polling_interval=0.1)
        for signal in (process_started, process_stopping, process_exited):
            tell(signal, Actor, process=worker)
        assert log() == [
            ("INFO", "worker-1 started (queues mail* *, polling interval 0.1)."),
            ("DEBUG", "worker-1 is stopping."),
            ("INFO", "worker-1 stopped."),
        ]

    @pytest.mark.parametrize(
        ("details", "level"),
        [({}, "WARNING"), ({"exit_code": 1}, "WARNING"), ({"exit_code": 0}, "INFO")],
    )
    def test_one_that_is_replaced(self, log, details, level):
        worker = a_worker(**details)
        tell(process_replaced, Actor, process=worker, reason="killed; again in 1.0 s.")
        assert log() == [(level, "worker-1 ended: killed; again in 1.0 s.")]

    @pytest.mark.django_db(transaction=True)
    def test_queues(self, log):
        pause("default", "mail")
        resume("default", "mail")
        assert log() == [
            ("INFO", "Queue 'mail' of database 'default' is paused."),
            ("INFO", "Queue 'mail' of database 'default' is open again."),
        ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.0123, "12 ms"),
        (1.0, "1.0 s"),
        (99.0, "99.0 s"),
        (100.0, "2 min"),
        (5999.0, "100 min"),
        (6000.0, "1.7 h"),
        (None, "an unknown time"),
    ],
)
def test_durations_are_short(seconds, text):
    assert lines._in_words(seconds) == text
