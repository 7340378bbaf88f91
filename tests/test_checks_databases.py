"""What is said about the databases that hold queues, and about their servers."""

import pytest
from django.core import checks as django_checks
from django.db import connections

from robust_queue import checks
from robust_queue.checks import check_configuration, check_databases

BACKEND = "robust_queue.backend.RobustQueueBackend"


@pytest.fixture(autouse=True)
def nothing_configured(settings):
    settings.ROBUST_QUEUE = None


@pytest.fixture
def add_database(monkeypatch):
    """Configure one more database, of any kind, that nobody connects to."""
    added = []

    def add(alias, engine, **options):
        entry = connections.settings["default"] | {
            "ENGINE": f"django.db.backends.{engine}",
            "OPTIONS": options,
        }
        monkeypatch.setitem(connections.settings, alias, entry)
        added.append(alias)
        return connections[alias]

    yield add
    for alias in added:
        del connections[alias]


def keep_queue_in(settings, database):
    tasks = {"default": {"BACKEND": BACKEND, "OPTIONS": {"DATABASE": database}}}
    settings.TASKS = tasks


def ids(messages):
    return [message.id.removeprefix("robust_queue.") for message in messages]


class TestSQLite:
    @pytest.mark.parametrize("options", [{}, {"transaction_mode": "deferred"}])
    def test_transactions_must_lock_when_they_begin(
        self, settings, add_database, options
    ):
        add_database("lite", "sqlite3", **options)
        keep_queue_in(settings, "lite")
        message, _router = check_configuration()
        assert isinstance(message, django_checks.Warning)
        assert message.id == "robust_queue.W001"
        assert message.msg.startswith("SQLite database 'lite' holds a queue, but")
        assert message.hint.startswith(
            "Set DATABASES['lite']['OPTIONS']['transaction_mode'] to 'IMMEDIATE'."
        )

    @pytest.mark.parametrize("mode", ["IMMEDIATE", "immediate", "EXCLUSIVE"])
    def test_these_do(self, settings, add_database, mode):
        add_database("lite", "sqlite3", transaction_mode=mode)
        keep_queue_in(settings, "lite")
        assert ids(check_configuration()) == ["W005"]


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("sqlite3", {"transaction_mode": 7}),
        ("postgresql", {"pool": {"max_size": "10"}}),
        ("postgresql", {"pool": {"min_size": None}}),
        ("mysql", {"isolation_level": 7}),
    ],
)
def test_nonsense_does_not_crash_the_checks(settings, add_database, engine, options):
    add_database("odd", engine, **options)
    keep_queue_in(settings, "odd")
    assert "W005" in ids(check_configuration())


class TestIsolation:
    @pytest.mark.parametrize("level", ["repeatable read", "SERIALIZABLE", None])
    def test_more_than_read_committed_is_told(self, settings, add_database, level):
        add_database("maria", "mysql", isolation_level=level)
        keep_queue_in(settings, "maria")
        message, _router = check_configuration()
        assert message.id == "robust_queue.W006"
        assert (level or "that of the server") in message.msg

    @pytest.mark.parametrize("options", [{}, {"isolation_level": "READ COMMITTED"}])
    def test_djangos_default_is_right(self, settings, add_database, options):
        add_database("maria", "mysql", **options)
        keep_queue_in(settings, "maria")
        assert ids(check_configuration()) == ["W005"]


class TestPool:
    @pytest.mark.parametrize(
        ("pool", "size"),
        [
            (True, 4),
            ({"timeout": 3}, 4),
            ({"min_size": 3}, 3),
            ({"min_size": 1, "max_size": 3}, 3),
            ({"min_size": 2, "max_size": None}, 2),
        ],
    )
    def test_must_have_a_connection_for_each_thread(
        self, settings, add_database, pool, size
    ):
        add_database("pooled", "postgresql", pool=pool)
        keep_queue_in(settings, "pooled")
        settings.ROBUST_QUEUE = {"workers": [{"threads": 2}, {"threads": 5}]}
        message, _router = check_configuration()
        assert message.id == "robust_queue.W002"
        assert message.msg.startswith(
            f"Database 'pooled' pools {size} connections, but a worker has 5 threads"
        )
        assert "to at least 5, or take fewer threads." in message.hint

    @pytest.mark.parametrize("pool", [None, False, {"max_size": 5}, {"min_size": 8}])
    def test_that_is_large_enough(self, settings, add_database, pool):
        add_database("pooled", "postgresql", pool=pool)
        keep_queue_in(settings, "pooled")
        settings.ROBUST_QUEUE = {"workers": [{"threads": 5}]}
        assert ids(check_configuration()) == ["W005"]

    def test_does_not_matter_where_no_worker_runs(self, settings, add_database):
        add_database("pooled", "postgresql", pool=True)
        keep_queue_in(settings, "pooled")
        settings.ROBUST_QUEUE = {"workers": []}
        assert ids(check_configuration()) == ["W005"]


class TestRouter:
    def test_must_look_where_the_jobs_are(self, settings):
        keep_queue_in(settings, "other")
        [message] = check_configuration()
        assert message.id == "robust_queue.W005"
        assert message.msg == (
            "Jobs are stored in 'other', but Job.objects looks for them in 'default'."
        )
        assert "'robust_queue.router.RobustQueueRouter'" in message.hint

    def test_that_of_the_package_does(self, settings):
        settings.DATABASE_ROUTERS = ["robust_queue.router.RobustQueueRouter"]
        keep_queue_in(settings, "other")
        assert check_configuration() == []

    def test_may_look_at_one_queue_of_several(self, settings):
        keep_queue_in(settings, "other")
        settings.TASKS = settings.TASKS | {"second": {"BACKEND": BACKEND}}
        assert check_configuration() == []


class TestServers:
    @pytest.mark.parametrize(
        ("version", "scrambled"),
        [
            ((10, 6, 20), False),
            ((10, 7, 0), True),
            ((10, 9, 8), True),
            ((10, 10, 6), True),
            ((10, 10, 7), False),
            ((10, 11, 5), True),
            ((10, 11, 6), False),
            ((11, 0, 3), True),
            ((11, 1, 3), False),
            ((11, 2, 1), True),
            ((11, 3, 0), False),
            ((12, 0, 1), False),
        ],
    )
    def test_some_versions_of_mariadb_scramble_uuids(self, version, scrambled):
        assert checks.scrambles_uuids(version) is scrambled

    @pytest.fixture
    def mariadb(self, settings, add_database, monkeypatch):
        """A queue on a server whose answers are given by the test."""

        def answering(version, log_bin, binlog_format):
            connection = add_database("maria", "mysql")
            keep_queue_in(settings, "maria")
            answers = {"log_bin": log_bin, "binlog_format": binlog_format}
            monkeypatch.setattr(checks, "_binlog", lambda _connection: answers)
            monkeypatch.setattr(checks.sizing, "connections_allowed", lambda _: 151)
            connection.mysql_server_data = {"version": version}

        return answering

    def test_such_a_version_is_refused(self, mariadb):
        mariadb("10.11.4-MariaDB", "OFF", "MIXED")
        [message] = check_databases(databases=["maria"])
        assert message.id == "robust_queue.E005"
        assert message.msg.startswith(
            "MariaDB 10.11.4 of database 'maria' does not sort UUIDs by time"
        )
        assert message.hint.startswith("Upgrade to MariaDB 10.11.6, 11.4 or later.")

    def test_mysql_of_such_a_number_is_not(self, mariadb):
        mariadb("10.11.4", "OFF", "ROW")
        assert check_databases(databases=["maria"]) == []

    def test_a_log_of_statements_is_refused(self, mariadb):
        mariadb("11.4.2-MariaDB", "ON", "STATEMENT")
        [message] = check_databases(databases=["maria"])
        assert message.id == "robust_queue.E006"
        assert message.msg.startswith("The server of database 'maria' logs statements")
        assert message.hint.startswith("Set binlog_format to MIXED or ROW.")

    @pytest.mark.parametrize(
        "answers", [("OFF", "STATEMENT"), ("ON", "MIXED"), ("ON", "ROW")]
    )
    def test_any_other_log_is_not(self, mariadb, answers):
        mariadb("11.4.2-MariaDB", *answers)
        assert check_databases(databases=["maria"]) == []

    @pytest.mark.parametrize("databases", [None, [], ["default"]])
    def test_only_servers_that_hold_a_queue_and_were_named_are_asked(
        self, mariadb, databases
    ):
        mariadb("10.11.4-MariaDB", "ON", "STATEMENT")
        assert check_databases(databases=databases) == []

    def test_one_bad_alias_keeps_quiet_about_databases(self, settings, mariadb):
        mariadb("10.11.4-MariaDB", "ON", "STATEMENT")
        settings.ROBUST_QUEUE = {"database": 3}
        assert check_databases(databases=["maria"]) == []
