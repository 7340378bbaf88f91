"""Many schedules that are due at once: batches, each of a few statements."""

import pytest
from django.db import connection

from robust_queue.lifecycle.recur import BATCH_SIZE, recur
from robust_queue.models import Job, RecurringExecution, RecurringTask
from tests.support.recurring import MINUTE, NOON
from tests.support.statements import statements
from tests.support.timetables import many
from tests.testapp.recurring_tasks import report

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def whole_batches(db):
    most = connection.features.max_query_params
    if most is not None and most < 10_000:
        pytest.skip("this Django takes batches for SQLite apart")


def statements_for(number):
    """How many it takes, if so many are due."""
    many(number, report, schedule="* * * * *", next_run_at=NOON)
    with statements() as sent:
        assert recur("default", now=NOON) == number
    return len(sent.changes)


def per_batch():
    # Rows that are locked, what is known of them, their jobs, their entries, cursors.
    # PostgreSQL writes a job and that it is ready at once.
    return 5 if connection.vendor == "postgresql" else 6


@pytest.mark.parametrize("number", [1, BATCH_SIZE - 1])
def test_a_batch_is_a_few_statements_however_large_it_is(number):
    assert statements_for(number) == per_batch()


def test_also_if_they_go_on_to_different_instants():
    many(60, report, schedule="* * * * *", next_run_at=NOON)
    for n, row in enumerate(RecurringTask.objects.all()):
        row.schedule = f"{n} * * * *"
        row.save()
    with statements() as sent:
        assert recur("default", now=NOON) == 60
    assert len(sent.changes) == per_batch()
    following = {NOON + n * MINUTE for n in range(1, 61)}
    assert set(RecurringTask.objects.values_list("next_run_at", flat=True)) == following


def test_a_full_batch_is_followed_by_another():
    look_for_more = 1
    assert statements_for(2 * BATCH_SIZE) == 2 * per_batch() + look_for_more
    assert Job.objects.count() == RecurringExecution.objects.count() == 1000
    assert set(RecurringTask.objects.values_list("next_run_at")) == {(NOON + MINUTE,)}
    assert recur("default", now=NOON) == 0


def test_what_was_missed_by_many_is_written_down_together():
    many(BATCH_SIZE - 1, report, schedule="* * * * *", next_run_at=NOON)
    with statements() as sent:
        assert recur("default", now=NOON + 10 * MINUTE) == BATCH_SIZE - 1
    # What is known of them, and what is left out of them.
    assert len(sent.changes) == per_batch() + 2
    left_out = RecurringExecution.objects.filter(skipped=10, run_at=NOON)
    assert left_out.count() == BATCH_SIZE - 1
