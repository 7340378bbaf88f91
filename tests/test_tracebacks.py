"""Tracebacks begin where the task does."""

import pytest

from robust_queue.models import Job
from robust_queue.testing import drain
from robust_queue.tracebacks import of_task
from tests.testapp.tasks import add_async, explode

pytestmark = pytest.mark.django_db


def files_of(text):
    return [line for line in text.splitlines() if line.startswith("  File ")]


@pytest.mark.parametrize(
    ("task", "arguments"), [(explode, ["boom"]), (add_async, [1, "a"])]
)
def test_what_is_stored_begins_with_the_code_of_the_task(task, arguments):
    result = task.enqueue(*arguments)
    drain()
    result.refresh()
    assert "testapp/tasks.py" in files_of(result.errors[0].traceback)[0]


def test_an_error_of_the_queue_itself_is_told_in_full():
    result = explode.enqueue()
    Job.objects.update(task_path="gone.away")
    drain()
    result.refresh()
    assert "registry.py" in files_of(result.errors[0].traceback)[-1]


def test_an_error_that_was_never_raised_has_none():
    assert of_task(ValueError()) is None
