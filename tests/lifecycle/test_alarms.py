"""What the overview warns of, and that it is quiet where all is well."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.lifecycle.alarms import alarms
from robust_queue.lifecycle.busiest import busiest
from robust_queue.lifecycle.roster import roster
from robust_queue.models import BlockedExecution, Process, RecurringTask
from robust_queue.stores import bloat as bloat_of_tables
from robust_queue.stores.bloat import Bloat, bloat
from tests.support import rows
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture
def everybody():
    supervisor = rows.process("Supervisor")
    for kind in ("Worker", "Dispatcher", "Scheduler"):
        rows.process(kind, supervisor_id=supervisor.pk)


def found():
    everybody = roster("default")
    return alarms("default", everybody, busiest("default", everybody.workers))


def told():
    return [each.text for each in found()]


def test_nothing_looks_wrong(everybody):
    rows.ready()
    rows.scheduled(scheduled_at=timezone.now() + HOUR)
    rows.blocked()
    with statements() as sent:
        assert told() == []
    assert len(sent) <= 12


def test_nobody_is_there(db):
    assert [each.split(":")[0] for each in told()] == [
        "No supervisor is alive",
        "No worker is alive",
        "No dispatcher is alive",
    ]


def test_no_dispatcher_is_missed_where_none_is_wanted(settings, db):
    settings.ROBUST_QUEUE = {"dispatchers": []}
    assert not [each for each in told() if "dispatcher" in each]


def test_processes_are_missing(everybody):
    rows.process("Worker", silent_for=HOUR)
    assert told() == ["1 process is missing: it was not heard of for too long."]
    rows.process("Worker", silent_for=HOUR)
    assert told() == [
        "2 processes are missing: they were not heard of for too long.",
    ]


def test_nobody_serves_a_queue(everybody):
    Process.objects.filter(kind="Worker").update(metadata='{"queues": ["mail"]}')
    rows.ready(rows.job(queue_name="mail"))
    rows.ready(rows.job(queue_name="post"))
    assert told() == ["Nobody serves these queues, and jobs wait there: post."]
    quiet = '{"queues": ["post", "mail"], "quiet": true}'
    Process.objects.filter(kind="Worker").update(metadata=quiet)
    assert told() == ["Only quiet workers serve these queues: mail, post."]


def test_the_fullest_queues_come_first(everybody):
    for queue, number in (("few", 1), ("many", 3), ("some", 2)):
        for _ in range(number):
            rows.ready(rows.job(queue_name=queue))
    rows.pause(queue_name="many")
    found = busiest("default", roster("default").workers)
    assert [(it.name, it.ready, it.is_paused) for it in found.rows] == [
        ("many", 3, True),
        ("some", 2, False),
        ("few", 1, False),
    ]


def test_scheduled_jobs_are_overdue(everybody):
    rows.scheduled(scheduled_at=timezone.now() - HOUR)
    (alarm,) = found()
    assert alarm.text.startswith("Scheduled jobs are overdue, the first since ")
    assert (alarm.page, alarm.query) == ("job", {"state": "scheduled"})


def test_a_scheduler_stalls(everybody):
    late = timezone.now() - HOUR
    for key in "abcd":
        rows.recurring_task(key=key, next_run_at=late, declared_at=timezone.now())
    (text,) = told()
    assert text.endswith("no scheduler seems to run: a, b, c, ….")
    RecurringTask.objects.update(enabled=False)
    assert told() == []


def test_pauses_are_told_as_wanted(everybody):
    rows.pause(queue_name="mail")
    rows.pause(queue_name="over", until=timezone.now() - HOUR)
    rows.task_pause(task_path="shop.tasks.charge")
    assert told() == [
        "Paused queues: mail.",
        "Paused tasks: shop.tasks.charge.",
    ]
    assert all(each.is_wanted for each in found())


def test_jobs_wait_long_for_a_slot(everybody):
    row = rows.blocked(concurrency_key="hot")
    BlockedExecution.objects.filter(pk=row.pk).update(created_at=timezone.now() - HOUR)
    (alarm,) = found()
    assert alarm.text.endswith("jobs wait for a slot of the key “hot”.")
    assert alarm.query == {"q": "hot"}


def test_dead_rows_are_told(everybody, monkeypatch):
    dead = Bloat({"robust_queue_ready_executions": 70_000}, 2 * HOUR)
    monkeypatch.setattr("robust_queue.lifecycle.alarms.bloat", lambda database: dead)
    assert told() == [
        "Table robust_queue_ready_executions has 70,000 dead rows, which slows polls "
        "down.",
        "A transaction has been open for 2:00:00: vacuum cannot work.",
    ]


def test_tables_are_asked_for_dead_rows_where_they_stay(monkeypatch):
    """Statistics come late, so what is asked is only that the question is one."""
    monkeypatch.setattr(bloat_of_tables, "WORTH_TELLING", -1)
    with statements() as sent:
        found = bloat("default")
    if connection.vendor == "postgresql":
        assert 1 <= len(sent) <= 2
    else:
        assert (found, list(sent)) == (Bloat({}), [])
