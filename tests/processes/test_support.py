"""What other tests stand on: poolers, lines and counts that do what they should."""

from contextlib import contextmanager

import pytest
from django.db import Error, connection, connections

from tests.settings import KIND
from tests.support.half_open import half_open_line
from tests.support.statement_count import statement_count
from tests.support.supervisors import until
from tests.support.threads import PATIENCE, started

pytestmark = [
    pytest.mark.skipif(KIND == "sqlite", reason="SQLite has no server"),
    pytest.mark.django_db(transaction=True),
]

SESSION = {"postgresql": "SELECT pg_backend_pid()", "mysql": "SELECT CONNECTION_ID()"}
SESSIONS = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE datname = current_database()",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = DATABASE()",
}


@contextmanager
def client(settings):
    """A connection of its own, by the way that a supervisor would be told."""
    made = connections.create_connection("default")
    made.settings_dict = {**made.settings_dict, **settings["database"]}
    # Some are left alone with their question.
    made.inc_thread_sharing()
    try:
        yield made
    finally:
        made.close()


def ask(where, sql):
    with where.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def session_of(where):
    return ask(where, SESSION[where.vendor])


def sessions():
    with connection.cursor() as cursor:
        cursor.execute(SESSIONS[connection.vendor])
        return {number for (number,) in cursor.fetchall()}


class TestPgBouncer:
    def test_transactions_of_two_clients_share_a_session(self, pooler):
        way = pooler().settings
        with client(way) as first, client(way) as second:
            assert session_of(first) == session_of(second)

    def test_in_session_mode_they_do_not(self, pooler):
        way = pooler("session").settings
        with client(way) as first, client(way) as second:
            assert session_of(first) != session_of(second)

    def test_it_goes_away_and_comes_back(self, pooler):
        pgbouncer = pooler()
        with client(pgbouncer.settings) as cut_off:
            assert ask(cut_off, "SELECT 1") == 1
            pgbouncer.stop()
            with pytest.raises(Error):
                ask(cut_off, "SELECT 1")
        pgbouncer.start()
        with client(pgbouncer.settings) as back:
            assert ask(back, "SELECT 1") == 1


class TestHalfOpenLine:
    def test_everything_is_carried_at_first(self):
        with half_open_line() as line, client(line.settings) as heard:
            assert ask(heard, "SELECT REPEAT('a', 3000000)") == "a" * 3_000_000

    def test_a_hole_swallows_questions_and_hangs_up_on_nobody(self):
        with half_open_line() as line, client(line.settings) as forgotten:
            session = session_of(forgotten)
            assert line.black_hole() == 1
            answer = started(ask, forgotten, "SELECT 'anybody?'")
            until(lambda: b"anybody?" in line.calls[0].said, "it was asked")
            with client(line.settings) as new:
                assert ask(new, "SELECT 1") == 1
            assert session in sessions()
            assert not answer.done()
            line.close()
            assert isinstance(answer.exception(PATIENCE), Error)

    def test_a_hole_swallows_answers(self):
        with half_open_line() as line, client(line.settings) as forgotten:
            ask(forgotten, "SELECT 1")
            slow = "pg_sleep" if connection.vendor == "postgresql" else "SLEEP"
            answer = started(ask, forgotten, f"SELECT {slow}(0.2)")
            until(lambda: b"0.2" in line.calls[0].said, "it was asked")
            line.black_hole()
            until(lambda: line.calls[0].swallowed, "it was answered")
            assert not answer.done()
            line.close()
            assert isinstance(answer.exception(PATIENCE), Error)

    def test_the_server_does_not_hear_that_a_client_is_gone(self):
        with half_open_line() as line:
            with client(line.settings) as forgotten:
                session = session_of(forgotten)
                line.black_hole()
            with client(line.settings) as new:
                later = session_of(new)
            until(lambda: later not in sessions(), "the server has heard of the other")
            assert session in sessions()

    def test_only_those_that_have_said_so_become_a_hole(self):
        with half_open_line() as line, client(line.settings) as loud:
            with client(line.settings) as quiet:
                ask(loud, "SELECT 'LISTEN'")
                ask(quiet, "SELECT 1")
                assert line.black_hole(having_said=b"LISTEN") == 1
                assert ask(quiet, "SELECT 2") == 2
            assert line.black_hole(having_said=b"LISTEN") == 0

    def test_calls_that_are_over_are_not_counted(self):
        with half_open_line() as line:
            with client(line.settings) as gone:
                ask(gone, "SELECT 1")
            until(lambda: line.black_hole() == 0, "it has hung up")


class TestStatementCount:
    def test_statements_of_others_are_counted(self, server):
        with client(server.settings) as other:
            ask(other, "SELECT 1")
            with statement_count(server) as sent:
                for number in range(5):
                    assert ask(other, f"SELECT {number}") == number
        assert sent.number == 5

    def test_whether_prepared_or_not(self, server):
        if connection.vendor != "postgresql":
            pytest.skip("only psycopg prepares statements")
        with client(server.settings) as other:
            ask(other, "SELECT 1")
            with statement_count(server) as sent:
                for _ in range(3):
                    other.connection.execute("SELECT %s\n, 2", [1], prepare=True)
        assert sent.number == 3

    def test_those_of_the_test_and_of_the_count_are_not(self, server):
        with statement_count(server) as sent:
            assert ask(connection, "SELECT 1") == 1
        assert sent.number == 0
