"""The pages of recurring tasks, and what a browser sends to them."""

import json

from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from robust_queue.lifecycle.timetable import schedule
from tests.support import rows
from tests.testapp.tasks import add

LIST = "admin:robust_queue_recurringtask_changelist"
ADD = "admin:robust_queue_recurringtask_add"
EXECUTIONS = "admin:robust_queue_recurringexecution_changelist"


def page(row):
    return address(row, "change")


def address(row, name):
    return reverse(f"admin:robust_queue_recurringtask_{name}", args=[row.pk])


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def told(response):
    """The messages of a page."""
    return [str(each) for each in response.context["messages"]]


def log():
    """What was done to what, oldest first."""
    entries = LogEntry.objects.order_by("pk")
    return [(each.action_flag, each.object_repr) for each in entries]


def made(key="k", **options):
    """A recurring task that was made at run time."""
    given = {"schedule": "0 12 * * *", "args": [1], **options}
    return schedule("default", key, given.pop("task", add), **given)


def declared(**values):
    """A row of code or settings, of which schedulers spoke a moment ago."""
    return rows.recurring_task(
        **{"declared_at": timezone.now(), "next_run_at": timezone.now(), **values}
    )


def filled(**changes):
    """The form as a browser sends it; None leaves a field out."""
    arguments = changes.pop("arguments", {"args": [1], "kwargs": {"b": 2}})
    given = {
        "key": "k",
        "task_path": add.module_path,
        "schedule": "0 12 * * *",
        "timezone": "",
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
        "queue_name": "",
        "priority": "",
        "description": "",
        "enabled": "on",
        "on_missed": "run_once",
        "missed_limit": "100",
        "overlap": "allow",
        "jitter": "0",
        **changes,
    }
    return {name: value for name, value in given.items() if value is not None}


def act(browser, action, *chosen, **fields):
    ticked = {"_selected_action": [row.pk for row in chosen]}
    return browser.post(
        reverse(LIST), {"action": action, **ticked, **fields}, follow=True
    )


def order(browser, row, word, **options):
    return browser.post(address(row, "order"), {"order": word}, **options)
