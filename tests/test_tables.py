"""Which migrations are missing, asked cheaply."""

from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

import robust_queue
from robust_queue.checks.tables import pending_migrations
from tests.support.statements import statements

MIGRATIONS = sorted(
    file.stem for file in Path(robust_queue.__file__).parent.glob("migrations/0*.py")
)

pytestmark = pytest.mark.django_db


def test_none_where_all_are_applied():
    assert pending_migrations("default") == []


def test_those_that_are_not_recorded():
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("robust_queue", MIGRATIONS[-1])
    recorder.record_applied("another_app", MIGRATIONS[-1])
    assert pending_migrations("default") == MIGRATIONS[-1:]


def test_all_where_nothing_was_ever_recorded(monkeypatch):
    monkeypatch.setattr(MigrationRecorder, "has_table", lambda self: False)
    assert pending_migrations("default") == MIGRATIONS


def test_none_where_the_project_has_switched_them_off(settings):
    settings.MIGRATION_MODULES = {"robust_queue": None}
    assert pending_migrations("default") == []


def test_the_migrations_of_the_project_are_not_loaded(monkeypatch):
    """A supervisor asks every second while it waits."""

    def refuse(*args, **kwargs):
        raise AssertionError("the whole project is loaded")

    monkeypatch.setattr(MigrationLoader, "build_graph", refuse)
    with statements() as sent:
        pending_migrations("default")
    assert len(sent) <= 2
