"""A database that was chosen in another window, while a form was open in this one."""

import pytest
from django.contrib.auth.models import User

from robust_queue.models import FailedExecution, Job, ReadyExecution, RecurringTask

from .deeds import address, deeds, log_length, make_world, tables

pytestmark = pytest.mark.django_db(databases=["default", "other"])

# What is told by a name or a number, which other rows have elsewhere.
NAMED = [
    *("clear a queue", "discard a group", "discard all", "rerun", "run", "pause"),
    "recurringtask run_selected",
]


@pytest.fixture
def browser(as_superuser):
    make_world()
    as_superuser.post(address("overview_changelist"), {"database": "other"})
    return as_superuser


def known():
    return deeds(User.objects.get())


@pytest.mark.parametrize("name", NAMED)
def test_what_was_meant_there_is_not_done_here(browser, name):
    deed = known()[name]
    for table in (RecurringTask, Job, FailedExecution, ReadyExecution):
        table.objects.using("other").bulk_create(table.objects.all())
    before = tables("default"), tables("other")
    answer = browser.post(deed.address, {**deed.body, "database": "default"})
    assert answer.status_code == 302
    assert (tables("default"), tables("other")) == before
    assert log_length() == 0
    browser.post(deed.address, {**deed.body, "database": "other"})
    assert tables("other") != before[1]


def test_a_form_that_was_filled_in_there_is_not_saved_here(browser):
    deed = known()["add"]
    answer = browser.post(deed.address, {**deed.body, "database": "default"})
    assert answer.status_code == 302
    assert not RecurringTask.objects.using("other").exists()


def test_forms_say_what_they_are_about(browser):
    question = browser.post(address("queue_changelist"), {"clear": "default"})
    lists = [f"{name}_changelist" for name in ("queue", "recurringtask", "taskpause")]
    forms = [browser.get(address(name)) for name in (*lists, "recurringtask_add")]
    for each in [question, *forms]:
        assert 'name="database" value="other"' in each.content.decode()
