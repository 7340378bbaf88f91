"""Hostile jobs: whatever is stored, the worker survives and the job tells why."""

import sys
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone, translation

from robust_queue import registry
from robust_queue.exceptions import UnknownTaskError
from robust_queue.lifecycle import failure
from robust_queue.models import FailedExecution, Job
from robust_queue.registry import declared, find, resolve
from robust_queue.testing import drain
from tests.support.invariants import states
from tests.support.threads import in_thread, in_threads
from tests.testapp.models import Customer
from tests.testapp.tasks import (
    add,
    echo,
    elsewhere,
    explode,
    leave_a_transaction_open,
    travel,
)

pytestmark = pytest.mark.django_db


class Unspeakable(Exception):
    def __str__(self):
        raise SystemExit("no words")


class TestUnreadableJobs:
    @pytest.mark.parametrize(
        "path",
        [
            "shop.tasks.gone",
            "os.system",
            "subprocess.run",
            "tests.testapp.tasks.Customer",
            "tests.testapp.tasks.performed",
            "",
            "a",
            "...",
            "robust_queue.enqueue_all",
        ],
    )
    def test_only_declared_tasks_are_run(self, path):
        add.enqueue(1)
        Job.objects.update(task_path=path)
        (result,) = drain()
        assert result.status == "FAILED"
        assert result.errors[0].exception_class is UnknownTaskError
        assert "task_modules" in result.errors[0].traceback

    @pytest.mark.parametrize(
        "arguments",
        [
            "",
            "nonsense",
            "[]",
            '{"args":[1]}',
            '{"args":{},"kwargs":[]}',
            '{"args":[],"kwargs":{}',
            '{"args":[{"$type":"zzz"}],"kwargs":{}}',
            '{"args":[{"$type":"model","model":"shop.order","pk":1}],"kwargs":{}}',
            '{"args":[{"$type":"enum","class":"os:system"}],"kwargs":{}}',
            "[" * 10_000,
            "null",
            '{"a":1}',
        ],
    )
    def test_unreadable_arguments(self, arguments):
        add.enqueue(1)
        Job.objects.update(arguments=arguments)
        (result,) = drain()
        assert result.status == "FAILED"
        assert list(states().values()) == ["failed"]
        assert result.task.get_backend().get_result(result.id).status == "FAILED"

    def test_a_call_that_no_longer_matches_the_function(self):
        add.enqueue(1)
        Job.objects.update(arguments='{"args":[1,2,3,4],"kwargs":{"z":5}}')
        (result,) = drain()
        assert result.errors[0].exception_class is TypeError

    def test_a_result_that_is_too_large(self, settings):
        settings.ROBUST_QUEUE = {"max_result_size": 100}
        echo.enqueue("x" * 50)
        echo.enqueue("x" * 200)
        small, large = drain()
        assert (small.status, large.status) == ("SUCCESSFUL", "FAILED")
        assert "MAX_RESULT_SIZE" in large.errors[0].traceback


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
@pytest.mark.parametrize("by", ["atomic", "autocommit", "closed"])
def test_a_task_that_leaves_a_transaction_open(by):
    """Whatever is written on its connection from then on would never be committed."""
    leave_a_transaction_open.enqueue(by)
    add.enqueue(1)
    careless, careful = drain()
    assert (careless.status, careful.status) == ("FAILED", "SUCCESSFUL")
    assert "left a transaction open on 'default'" in careless.errors[0].traceback
    assert sorted(in_thread(states).values()) == ["failed", "finished"]
    assert not Customer.objects.exists()
    elsewhere.enqueue()
    assert len(drain(database="other")) == 1


@pytest.mark.django_db
def test_a_block_left_open_inside_a_test():
    leave_a_transaction_open.enqueue()
    add.enqueue(1)
    assert [r.status for r in drain()] == ["FAILED", "SUCCESSFUL"]
    assert not Customer.objects.exists()


def test_a_task_does_not_leave_its_language_and_time_zone_behind():
    travel.enqueue()
    travel.enqueue()
    assert [r.return_value for r in drain()] == [("en-us", "UTC")] * 2
    assert translation.get_language() == "en-us"
    assert timezone.get_current_timezone_name() == "UTC"


def test_what_was_in_force_before_a_task_is_in_force_again(settings):
    travel.enqueue()
    with translation.override("fr"), timezone.override(ZoneInfo("Europe/Madrid")):
        assert [r.return_value for r in drain()] == [("fr", "Europe/Madrid")]
        assert translation.get_language() == "fr"
        assert timezone.get_current_timezone_name() == "Europe/Madrid"
    settings.TIME_ZONE = "Asia/Tokyo"
    assert timezone.get_current_timezone_name() == "Asia/Tokyo"


class TestFailures:
    def test_texts_that_a_database_cannot_hold(self):
        explode.enqueue("NUL \0 surrogate \ud800 end")
        drain()
        row = FailedExecution.objects.get()
        assert row.message == "NUL \\x00 surrogate \\ud800 end"

    def test_long_tracebacks_keep_both_ends(self):
        explode.enqueue("x" * 200_000 + "the end")
        drain()
        row = FailedExecution.objects.get()
        assert row.traceback.startswith("Traceback")
        assert row.traceback.endswith("the end\n")
        assert "characters left out" in row.traceback
        assert len(row.traceback) < failure.TRACEBACK_LENGTH + 100
        assert len(row.message) == failure.MESSAGE_LENGTH

    def test_an_exception_that_cannot_be_shown(self):
        described = failure.describe(Unspeakable())
        assert described["message"] == "<its message cannot be shown: SystemExit>"
        assert "Unspeakable" in described["traceback"]


class TestRegistry:
    def test_a_task_is_found_by_its_path(self):
        assert find("tests.testapp.tasks.add") is add
        assert declared()["tests.testapp.tasks.add"] is add

    def test_variations_do_not_replace_the_declared_one(self):
        add.using(priority=7)
        assert find("tests.testapp.tasks.add").priority == 0

    def test_an_unknown_task_says_what_to_do(self):
        with pytest.raises(UnknownTaskError, match="renamed or removed"):
            resolve("shop.tasks.gone")

    def test_the_first_job_of_a_fresh_process_knows_its_task(self, monkeypatch):
        """Nobody has imported the module yet that declares it."""
        monkeypatch.setattr(registry, "_declared", {})
        monkeypatch.setattr(registry, "_discovery", registry._Discovery())
        monkeypatch.delitem(sys.modules, "tests.testapp.tasks")
        found = registry.find("tests.testapp.tasks.add")
        assert found.func.__module__ == "tests.testapp.tasks"
        assert found is not add

    def test_a_broken_module_of_tasks_is_told_and_hides_nothing(
        self, settings, tmp_path, monkeypatch, caplog
    ):
        (tmp_path / "broken_jobs.py").write_text("raise RuntimeError('broken')\n")
        (tmp_path / "sound_jobs.py").write_text(
            "from robust_queue import task\n\n@task\ndef sound():\n    return 1\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        settings.ROBUST_QUEUE = {"task_modules": ["broken_jobs", "sound_jobs"]}
        assert resolve("sound_jobs.sound").name == "sound"
        result = add.enqueue(1)
        Job.objects.update(task_path="shop.tasks.gone")
        assert result.task.get_backend().get_result(result.id).args == [1]
        with pytest.raises(UnknownTaskError) as caught:
            resolve("shop.tasks.gone")
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert "broken_jobs could not be imported" in caplog.text

    def test_threads_wait_for_the_one_that_discovers(
        self, settings, tmp_path, monkeypatch
    ):
        (tmp_path / "slow_jobs.py").write_text(
            "import threading\nfrom robust_queue import task\n"
            "threading.Event().wait(0.2)\n\n@task\ndef slow():\n    return 1\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        settings.ROBUST_QUEUE = {"task_modules": ["slow_jobs"]}
        found = in_threads([lambda: registry.find("slow_jobs.slow")] * 4)
        assert [each.name for each in found] == ["slow"] * 4

    def test_modules_of_tasks_can_be_named(self, settings, tmp_path, monkeypatch):
        (tmp_path / "jobs_of_the_shop.py").write_text(
            "from robust_queue import task\n\n@task\ndef restock():\n    return 1\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        settings.ROBUST_QUEUE = {"task_modules": ["jobs_of_the_shop"]}
        assert resolve("jobs_of_the_shop.restock").name == "restock"
