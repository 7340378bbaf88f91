"""Migrations: complete, linear, reversible, with names a human can read."""

import re

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader


@pytest.mark.django_db
def test_none_is_missing():
    call_command("makemigrations", "robust_queue", check_changes=True, verbosity=0)


@pytest.mark.django_db
def test_they_are_linear():
    leaves = MigrationLoader(connection).graph.leaf_nodes("robust_queue")
    assert len(leaves) == 1


@pytest.mark.django_db(transaction=True)
def test_they_are_reversible():
    call_command("migrate", "robust_queue", "zero", verbosity=0)
    assert not [t for t in connection.introspection.table_names() if "robust" in t]
    call_command("migrate", "robust_queue", verbosity=0)
    tables = set(connection.introspection.table_names())
    assert {model._meta.db_table for model in queue_models()} <= tables


def test_names_are_readable_and_short():
    for model in queue_models():
        assert model._meta.db_table.startswith("robust_queue_")
        for named in (*model._meta.indexes, *model._meta.constraints):
            assert re.fullmatch(r"rqueue_[a-z_]{4,23}", named.name)


def test_every_table_of_the_design_is_there():
    named = {m._meta.db_table.removeprefix("robust_queue_") for m in queue_models()}
    assert named >= {
        "jobs",
        "ready_executions",
        "scheduled_executions",
        "claimed_executions",
        "blocked_executions",
        "failed_executions",
        "recurring_tasks",
        "recurring_executions",
        "semaphores",
        "pauses",
        "processes",
    }


@pytest.mark.django_db
def test_the_hot_tables_are_vacuumed_early():
    if connection.vendor != "postgresql":
        pytest.skip("autovacuum is PostgreSQL's")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'robust_queue_%%'"
            " AND 'autovacuum_vacuum_scale_factor=0' = ANY (reloptions)"
        )
        assert cursor.fetchone() == (5,)


def queue_models():
    return apps.get_app_config("robust_queue").get_models()
