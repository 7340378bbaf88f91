"""The index that finds jobs by their arguments: made, relied on, and removed."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.utils import ProgrammingError
from django.test.utils import CaptureQueriesContext

from robust_queue.lifecycle import search_index
from robust_queue.models import Job
from tests.testapp.tasks import note

on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="Only PostgreSQL has such an index."
)
elsewhere = pytest.mark.skipif(
    connection.vendor == "postgresql", reason="PostgreSQL has such an index."
)


@pytest.fixture(autouse=True)
def forgotten():
    search_index._seen.clear()
    yield
    search_index._seen.clear()


@pytest.fixture
def removed(transactional_db):
    """Whatever a test makes is gone after it."""
    yield
    search_index.drop("default")


def command(*words):
    """What the command says."""
    out = io.StringIO()
    call_command("robust_queue", "search-index", *words, stdout=out)
    return out.getvalue().strip()


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def fail_to_build():
    """Leave behind what an interrupted CREATE INDEX CONCURRENTLY leaves behind."""
    execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    search_index._build("default", "public")
    execute(
        "UPDATE pg_index SET indisvalid = false "
        f"WHERE indexrelid = '{search_index.NAME}'::regclass"
    )


@on_postgresql
@pytest.mark.usefixtures("removed")
class TestOnPostgreSQL:
    def test_it_is_made_once_and_removed_once(self):
        assert search_index.create("default") is True
        assert search_index.status("default").is_valid
        assert search_index.create("default") is False
        assert search_index.drop("default") is True
        assert search_index.status("default") == search_index.Status()
        assert search_index.drop("default") is False

    def test_one_that_was_interrupted_counts_for_nothing_and_is_built_anew(self):
        fail_to_build()
        assert search_index.status("default").exists
        assert search_index.is_there("default") is False
        assert search_index.create("default") is True
        assert search_index.status("default").is_valid
        assert search_index.is_there("default") is True

    def test_what_an_interrupted_rebuild_leaves_behind_is_removed(self):
        search_index.create("default")
        leftover = search_index.LEFTOVERS[0]
        execute(f"CREATE INDEX {leftover} ON {search_index.TABLE} (arguments)")
        search_index.create("default")
        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass(%s)", [leftover])
            assert cursor.fetchone() == (None,)

    def test_a_search_uses_it(self):
        search_index.create("default")
        note.enqueue("customer-77@example.org")
        found = Job.objects.filter(arguments__contains="customer-77@")
        execute("SET enable_seqscan = off")
        try:
            assert search_index.NAME in found.explain()
            assert found.count() == 1
        finally:
            execute("RESET enable_seqscan")

    def test_the_extension_may_be_in_a_schema_that_is_not_searched(self):
        execute("DROP EXTENSION IF EXISTS pg_trgm")
        execute("CREATE SCHEMA aside")
        try:
            execute("CREATE EXTENSION pg_trgm SCHEMA aside")
            assert search_index.create("default") is True
        finally:
            search_index.drop("default")
            execute("DROP SCHEMA aside CASCADE")

    def test_the_database_is_asked_once_in_a_while(self):
        search_index.create("default")
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert search_index.is_there("default") is True
            assert search_index.is_there("default") is True
        assert len(asked) == 1

    def test_what_it_was_is_forgotten_after_a_while(self, monkeypatch):
        assert search_index.is_there("default") is False
        search_index._build("default", search_index._schema_of_trigrams("default"))
        assert search_index.is_there("default") is False
        monkeypatch.setattr(search_index, "MEMORY", -1.0)
        assert search_index.is_there("default") is True

    def test_only_three_in_a_row_lead_anywhere(self):
        search_index.create("default")
        for text in ("customer-7", "x1y"):
            assert search_index.finds("default", text) is True
        for text in ("77@", "a-b-c-d", ""):
            assert search_index.finds("default", text) is False

    def test_the_timeouts_of_the_session_are_as_before(self):
        execute("SET statement_timeout = '77s'")
        search_index.create("default")
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("77s",)
        execute("RESET statement_timeout")

    def test_who_may_not_is_told_who_may(self):
        execute("CREATE ROLE nobody_here")
        execute("GRANT USAGE ON SCHEMA public TO nobody_here")
        execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        execute("SET ROLE nobody_here")
        try:
            with pytest.raises(search_index.SearchIndexError, match="owns robust_q"):
                search_index.create("default")
        finally:
            execute("RESET ROLE")
            execute("REVOKE USAGE ON SCHEMA public FROM nobody_here")
            execute("DROP ROLE nobody_here")

    def test_the_verb(self):
        assert command().startswith("There is none")
        assert command("--create").startswith("Created: ")
        assert command("--create").startswith("There already: ")
        assert command("--status").startswith("It is there: ")
        assert command("--drop") == "Removed."
        assert command("--drop") == "There was none."
        fail_to_build()
        assert "interrupted" in command("--status")


@elsewhere
@pytest.mark.django_db
class TestElsewhere:
    @pytest.mark.parametrize("option", ["--create", "--drop", "--status"])
    def test_it_is_refused(self, option):
        with pytest.raises(CommandError, match="Only PostgreSQL"):
            command(option)

    def test_searches_do_without_a_statement(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert search_index.is_there("default") is False
            assert search_index.finds("default", "customer") is False


class Refusal(Exception):
    """What a driver raises."""

    def __init__(self, sqlstate):
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("sqlstate", "cure"),
    [("42501", "CREATE EXTENSION pg_trgm"), ("58P01", "postgresql-contrib")],
)
def test_a_server_without_the_extension_is_explained(sqlstate, cure):
    error = ProgrammingError("refused")
    error.__cause__ = Refusal(sqlstate)
    assert cure in search_index._explained("CREATE EXTENSION pg_trgm", error)
