"""What the doctor says of recurring tasks."""

from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.lifecycle.timetable import pause, resume
from robust_queue.models import RecurringTask
from tests.support.findings import only

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def recurring(**changes):
    now = timezone.now()
    given = {
        "key": "k",
        "task_path": "shop.tasks.report",
        "schedule": "@yearly",
        "declared_at": now,
        "next_run_at": now + HOUR,
        **changes,
    }
    return RecurringTask.objects.create(**given)


def test_what_waits_for_its_time_is_in_order(ask):
    recurring()
    assert ask() == {}


def test_what_is_overdue_is_named(ask):
    late = recurring(next_run_at=timezone.now() - HOUR)
    severity, offenders = only(ask(), "overdue")
    assert severity == "problem"
    assert offenders == (f"k, due at {late.next_run_at}",)


def test_unless_it_is_paused_or_retired(ask):
    past = timezone.now() - HOUR
    recurring(key="a", next_run_at=past, enabled=False)
    recurring(key="b", next_run_at=None, retired_at=past, declared_at=past)
    assert ask() == {}


def test_orphans_are_named(ask):
    orphan = recurring(
        declared_at=timezone.now() - HOUR, next_run_at=timezone.now() - HOUR
    )
    severity, offenders = only(ask(), "declared by no scheduler")
    assert severity == "warning"
    assert offenders == (f"k, since {orphan.declared_at}",)


def test_what_was_made_at_run_time_needs_no_declaration(ask):
    recurring(static=False, declared_at=None)
    assert ask() == {}


def test_a_cursor_that_a_wrong_clock_has_moved_is_named(ask):
    recurring(schedule="* * * * *", next_run_at=timezone.now() + HOUR)
    severity, offenders = only(ask(deep=True), "a clock was ahead")
    assert severity == "warning"
    assert offenders[0].startswith("k, next run at")
    pause("default", "k")
    resume("default", "k")
    assert ask(deep=True) == {}


def test_a_schedule_that_nobody_understands_is_no_matter_of_clocks(ask):
    recurring(schedule="whenever")
    assert ask(deep=True) == {}


def test_one_that_nobody_has_understood_when_it_was_due_is_named(ask):
    recurring(schedule="whenever", next_run_at=None)
    severity, offenders = only(ask(), "no scheduler has understood")
    assert (severity, offenders) == ("problem", ("k whenever",))
