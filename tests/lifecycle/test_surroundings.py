"""What a task finds around it when it really runs."""

import logging

import pytest
from django.utils import timezone, translation

from robust_queue import current_job
from robust_queue.compat import task_logger
from robust_queue.testing import drain
from tests.settings import TASKS
from tests.testapp.tasks import (
    job_around,
    job_around_coroutine,
    locale_around,
    locale_around_coroutine,
    succeed_at_last,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("task", [job_around, job_around_coroutine])
def test_its_job(task):
    enqueued = task.using(queue_name="mail").enqueue()
    (result,) = drain()
    assert result.return_value == [enqueued.id, task.module_path, "mail", 1]
    assert current_job() is None


@pytest.mark.parametrize("task", [locale_around, locale_around_coroutine])
def test_the_language_and_the_zone_of_its_enqueuer(task, settings):
    options = {"RESTORE_LANGUAGE": True, "RESTORE_TIME_ZONE": True}
    settings.TASKS = {**TASKS, "default": {**TASKS["default"], "OPTIONS": options}}
    with translation.override("de"), timezone.override("Europe/Madrid"):
        task.enqueue()
    (result,) = drain()
    assert result.return_value == ["de", "Europe/Madrid"]
    assert translation.get_language() == "en-us"


def test_nothing_of_the_enqueuer_unless_asked_for():
    with translation.override("de"), timezone.override("Europe/Madrid"):
        locale_around.enqueue()
    (result,) = drain()
    assert result.return_value == ["en-us", "UTC"]


def test_the_error_of_an_attempt_is_at_hand_where_it_is_told(caplog):
    caplog.set_level(logging.DEBUG, task_logger.name)
    succeed_at_last.enqueue()
    drain()
    (line,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert line.exc_info[0] is OSError
