"""The quick examination: finds nothing where nothing is, else says who is missing."""

import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import OperationalError, connections
from django.test import override_settings
from django.utils import timezone

from robust_queue.doctor import Finding, activity, examine, foundation
from robust_queue.models import Job, Process
from robust_queue.testing import drain
from tests.support import rows
from tests.support.findings import only
from tests.support.statements import statements
from tests.testapp.tasks import add, explode, note

pytestmark = pytest.mark.django_db


def test_a_healthy_queue_has_no_findings(ask):
    for _ in range(3):
        add.enqueue(1, 2)
    drain()
    note.enqueue()
    note.using(run_after=timedelta(hours=1)).enqueue()
    assert ask() == ask(deep=True) == {}


def test_nobody_is_alive():
    found = examine("default", deep=True)
    assert [each.text for each in found] == list(activity.MISSED.values())
    assert {each.severity for each in found} == {"problem"}


@override_settings(ROBUST_QUEUE={"dispatchers": []})
def test_nobody_misses_a_dispatcher_that_nobody_wants():
    texts = [each.text for each in examine("default", deep=False)]
    assert len(texts) == 2
    assert not any("dispatcher" in text for text in texts)


def test_the_silent_are_named_and_do_not_count_as_alive(crew):
    hours = timedelta(hours=1)
    moment = timezone.now() - hours
    Process.objects.filter(kind="Worker").update(last_heartbeat_at=moment)
    missing, silent = examine("default", deep=False)
    assert missing == Finding("problem", activity.MISSED["Worker"])
    assert silent.severity == "warning"
    assert crew["Worker"].name in silent.rows[0]
    assert "silent for more than 0:05:00" in silent.text


@override_settings(
    ROBUST_QUEUE={
        "process_alive_threshold": timedelta(hours=2),
        "process_heartbeat_interval": timedelta(minutes=1),
    }
)
def test_the_threshold_is_that_of_the_settings():
    for kind in activity.MISSED:
        rows.process(kind, silent_for=timedelta(hours=1))
    assert examine("default", deep=False) == []


def serve(worker, metadata):
    Process.objects.filter(pk=worker.pk).update(metadata=metadata)


def test_queues_that_nobody_serves(ask, crew):
    serve(crew["Worker"], json.dumps({"queues": ["mail", "photo*"]}))
    for name in ("mail", "photos", "reports"):
        rows.ready(rows.job(queue_name=name))
    severity, offenders = only(ask(), "no live worker serves them")
    assert (severity, offenders) == ("problem", ("reports: 1 ready",))
    rows.process(metadata=json.dumps({"queues": "reports"}))
    assert ask() == {}


def test_queues_that_only_quiet_workers_serve(ask, crew):
    serve(crew["Worker"], json.dumps({"queues": ["mail", "web"], "quiet": True}))
    rows.process(metadata=json.dumps({"queues": ["web"]}))
    rows.ready(rows.job(queue_name="mail"))
    rows.ready(rows.job(queue_name="web"))
    severity, offenders = only(ask(), "all workers that serve them are quiet")
    assert (severity, offenders) == ("warning", ("mail: 1 ready",))
    rows.pause(queue_name="mail")
    assert not any("are quiet" in text for text in ask())


def test_a_silent_worker_serves_nothing(ask, crew):
    serve(crew["Worker"], '{"queues": ["mail"]}')
    rows.process(silent_for=timedelta(hours=1))
    rows.ready()
    assert any("no live worker serves" in text for text in ask())


@pytest.mark.parametrize("metadata", ["", "nonsense", "[]", '{"queues": 7}'])
def test_a_worker_that_tells_nonsense_is_taken_to_serve_everything(ask, crew, metadata):
    serve(crew["Worker"], metadata)
    rows.ready()
    assert ask() == {}


def test_jobs_that_wait_in_a_paused_queue(ask):
    rows.ready(rows.job(queue_name="mail"))
    rows.pause(queue_name="mail")
    rows.pause(queue_name="empty")
    severity, (row,) = only(ask(), "queues that are paused")
    assert severity == "warning"
    assert row.startswith("mail: 1 ready, paused at 2")


def test_scheduled_jobs_that_are_overdue(ask):
    late = rows.scheduled(scheduled_at=timezone.now() - timedelta(minutes=2))
    rows.scheduled(scheduled_at=timezone.now() - timedelta(seconds=30))
    severity, (row,) = only(ask(), "overdue")
    assert severity == "problem"
    assert str(late.pk) in row


def test_failed_jobs_are_counted(ask):
    explode.enqueue()
    drain()
    assert only(ask(), "1 job has failed") == ("warning", ())
    rows.failed()
    assert only(ask(), "2 jobs have failed") == ("warning", ())


def test_the_quick_examination_takes_few_statements(ask):
    for number in range(20):
        rows.ready(rows.job(queue_name=f"queue-{number}"))
        rows.pause()
    with statements() as sent:
        ask()
    assert len(sent) <= 12


# ── Foundation ─────────────────────────────────────────────────────────────────


def test_a_database_that_cannot_be_reached(monkeypatch):
    def refuse():
        raise OperationalError("connection refused")

    monkeypatch.setattr(connections["default"], "cursor", refuse)
    (found,) = examine("default", deep=True)
    assert found.severity == "problem"
    assert found.text == "Database 'default' cannot be used: connection refused"


@pytest.mark.django_db(transaction=True)
def test_migrations_that_are_not_applied():
    call_command("migrate", "robust_queue", "zero", verbosity=0)
    try:
        (found,) = examine("default", deep=True)
    finally:
        call_command("migrate", "robust_queue", verbosity=0)
    assert found.severity == "problem"
    assert "run migrate --database default" in found.text
    assert "0001_initial" in found.rows


def test_tables_that_a_router_keeps_out(monkeypatch):
    introspection = connections["default"].introspection
    tables = [t for t in introspection.table_names() if t != Job._meta.db_table]
    monkeypatch.setattr(introspection, "table_names", lambda *args: tables)
    (found,) = foundation.examine("default")
    assert found.rows == ("robust_queue_jobs",)


def test_a_finding_is_printed_with_its_rows():
    found = Finding("problem", "Something is wrong.", ("this", "that"))
    assert str(found) == "problem: Something is wrong.\n  this\n  that"
