"""Buttons in a browser: plain forms, which do the same without any script."""

import pytest
from django.urls import reverse

from robust_queue.lifecycle.timetable import schedule
from robust_queue.models import (
    FailedExecution,
    Pause,
    ReadyExecution,
    RecurringExecution,
    RecurringTask,
)
from tests.browser import seed
from tests.browser.site import apart
from tests.support import rows
from tests.testapp.tasks import add

WIDTH = 1440


@pytest.fixture
def window(windows, has_scripts):
    """A wide window, with scripts and without, in which nothing may go wrong."""
    visitor = windows(WIDTH, has_scripts)
    yield visitor
    assert not visitor.troubles


@pytest.fixture
def name(has_scripts):
    """Of rows that only this test knows."""
    return f"button-{'scripts' if has_scripts else 'plain'}"


def list_of(model_name):
    return reverse(f"admin:robust_queue_{model_name}_changelist")


def page_of(row):
    return reverse(f"admin:robust_queue_{row._meta.model_name}_change", args=[row.pk])


def is_there(rows):
    """Ask the database, where it is allowed."""
    return apart(rows.exists)


def test_a_queue_is_paused_and_resumed(window, name):
    apart(lambda: rows.ready(seed.job(queue=name)))
    paused = Pause.objects.filter(queue_name=name)
    window.open(list_of("queue"))
    window.press(f"Pause {name}")
    assert f"Queue “{name}” is paused." in window.text()
    assert is_there(paused)
    window.press(f"Resume {name}")
    assert f"Queue “{name}” gives out work again." in window.text()
    assert not is_there(paused)


def test_a_group_of_failures_is_retried(window, name):
    task, exception = f"shop.{name}", "shop.errors.Refused"
    failed = apart(_failed_alike, task, exception)
    window.open(list_of("failures"))
    window.press(f"Retry all of {task}: Refused")
    assert not is_there(FailedExecution.objects.filter(pk__in=failed))
    assert is_there(ReadyExecution.objects.filter(pk__in=failed))


def _failed_alike(task, exception):
    jobs = [rows.job(task_path=task) for _ in range(3)]
    return [rows.failed(each, exception_class=exception).pk for each in jobs]


def test_a_recurring_task_is_run_and_paused_and_resumed(window, name):
    row = apart(_recurring, name)
    enabled = RecurringTask.objects.filter(key=name, enabled=True)
    window.open(page_of(row))
    window.press("Run now")
    assert is_there(RecurringExecution.objects.filter(task_key=name, by_hand=True))
    window.press("Pause")
    assert not is_there(enabled)
    window.press("Resume")
    assert is_there(enabled)


def _recurring(key):
    return schedule("default", key, add, schedule="0 12 * * *", args=[1, 2])
