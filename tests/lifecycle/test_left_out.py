"""A cursor that was set back: what is told of an instant stays, the rest is told."""

from datetime import timedelta

import pytest

from robust_queue.lifecycle.left_out import pass_over
from robust_queue.lifecycle.recur import recur
from robust_queue.models import RecurringExecution, RecurringTask
from tests.support.recurring import MINUTE, NOON, due, history, row

pytestmark = pytest.mark.django_db(transaction=True)


def recur_at(minute):
    recur("default", now=NOON + minute * MINUTE)


def set_back():
    RecurringTask.objects.update(next_run_at=NOON)


def told():
    """By the minutes after noon: those that ran, and those left out, and how many."""
    return [
        (_minute(each.run_at), _minute(each.skipped_until), each.skipped)
        if each.skipped_until
        else _minute(each.run_at)
        for each in history()
    ]


def _minute(moment):
    return (moment - NOON) // MINUTE


def test_what_follows_a_run_is_told():
    due()
    recur_at(0)
    set_back()
    recur_at(4)
    assert told() == [0, (1, 3, 3), 4]


def test_what_lies_between_runs_is_told():
    due(on_missed="skip")
    for minute in (0, 1, 4):
        recur_at(minute)
    assert told() == [0, 1, (2, 3, 2), 4]
    set_back()
    recur_at(7)
    assert told() == [0, 1, (2, 3, 2), 4, (5, 6, 2), 7]


def test_also_if_there_were_other_instants_before():
    due(schedule="*/3 * * * *", on_missed="run_all")
    recur_at(6)
    assert told() == [0, 3, 6]
    RecurringTask.objects.update(schedule="* * * * *", on_missed="run_once")
    set_back()
    recur_at(8)
    assert told() == [0, (1, 2, 2), 3, (4, 5, 2), 6, (7, 7, 1), 8]


def test_what_is_told_of_all_is_told_once():
    due()
    recur_at(5)
    before = told()
    set_back()
    recur_at(5)
    assert told() == before == [(0, 4, 5), 5]


def test_what_somebody_ran_by_hand_is_no_instant():
    due()
    recur_at(0)
    moment = NOON + MINUTE + timedelta(microseconds=1)
    RecurringExecution.objects.create(task_key="k", run_at=moment, by_hand=True)
    set_back()
    recur_at(3)
    assert told() == [0, (1, 2, 2), 1, 3]


def test_what_is_passed_over_by_a_person():
    due()
    recur_at(0)
    set_back()
    following = pass_over("default", row(), now=NOON + 3 * MINUTE, reason="paused")
    assert following == NOON + 4 * MINUTE
    assert told() == [0, (1, 3, 3)]
