"""What a configuration asks of its host and servers, and what is said about it."""

import os

import pytest
from django.db import connection, connections

from robust_queue import checks
from robust_queue.checks import check_configuration, check_databases
from robust_queue.checks.sizing import connections_allowed, usable_cores
from robust_queue.configuration import (
    ConfigurationOptions,
    DispatcherConfiguration,
    WorkerConfiguration,
)
from robust_queue.sizing import connections_needed, connections_of, worker_processes
from tests.settings import KIND

BACKEND = "robust_queue.backend.RobustQueueBackend"
HAS_SERVER = KIND != "sqlite"


@pytest.fixture(autouse=True)
def sound(settings):
    settings.ROBUST_QUEUE = None
    settings.TASKS = {"default": {"BACKEND": BACKEND}}


class TestArithmetic:
    def test_the_defaults(self):
        # Supervisor 1, worker 3 + 2 + 2, dispatcher 2, scheduler 2.
        assert connections_needed(ConfigurationOptions()) == 12

    def test_every_process_counts(self):
        options = ConfigurationOptions(
            workers=[
                WorkerConfiguration(threads=5, processes=2, coroutines=0),
                WorkerConfiguration(threads=1, coroutines=0),
            ],
            dispatchers=[DispatcherConfiguration(), DispatcherConfiguration()],
        )
        assert connections_needed(options) == 1 + 2 * (5 + 2) + (1 + 2) + 2 * 2 + 2
        assert worker_processes(options) == 3

    def test_who_listens_has_one_more_in_every_worker(self):
        options = ConfigurationOptions(workers=[WorkerConfiguration(processes=4)])
        more = connections_needed(options, listens=True) - connections_needed(options)
        assert more == 4

    def test_coroutines_share_two(self):
        worker = WorkerConfiguration(threads=2, coroutines=200)
        assert connections_of(worker) == 2 + 2 + 2

    def test_isolated_tasks_have_one_each(self):
        worker = WorkerConfiguration(threads=2, coroutines=0, isolation="process")
        assert connections_of(worker) == 2 + 2 + 2
        few = WorkerConfiguration(isolation="process", coroutines=0, isolated=1)
        assert connections_of(few) == 2 + 3 + 1

    def test_a_host_without_workers(self):
        options = ConfigurationOptions(workers=[], dispatchers=[])
        assert connections_needed(options, listens=True) == 3
        assert worker_processes(options) == 0


class TestHost:
    @pytest.fixture(autouse=True)
    def two_cores(self, monkeypatch):
        monkeypatch.setattr(checks.sizing, "usable_cores", lambda: 2)

    def test_more_processes_than_the_cores_can_use(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{"processes": 2}, {"processes": 3}]}
        [message] = check_configuration()
        assert message.id == "robust_queue.W007"
        assert message.msg == (
            "ROBUST_QUEUE['workers'] asks for 5 worker processes, but this host has 2"
            " cores for them: they would wait for each other."
        )
        assert message.hint.startswith("Run 2 to 4, and give tasks that wait")

    def test_two_for_each_core_are_well(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{"processes": 2}, {"processes": 2}]}
        assert check_configuration() == []

    def test_a_single_core(self, settings, monkeypatch):
        monkeypatch.setattr(checks.sizing, "usable_cores", lambda: 1)
        settings.ROBUST_QUEUE = {"workers": [{"processes": 3}]}
        [message] = check_configuration()
        assert "this host has 1 core for them" in message.msg

    def test_more_threads_than_make_sense(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{"threads": 50}, {"threads": 51}]}
        [message] = check_configuration()
        assert message.id == "robust_queue.W008"
        assert message.msg == (
            "ROBUST_QUEUE['workers'][1] asks for 51 threads in one process, where only"
            " one at a time runs Python code."
        )
        assert message.hint.startswith("Spread them over several processes, or")


class TestCores:
    @pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="of Linux only")
    def test_only_those_that_this_process_may_use_count(self):
        allowed = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(allowed)})
            assert usable_cores() == 1
        finally:
            os.sched_setaffinity(0, allowed)
        assert usable_cores() == len(allowed)

    def test_all_count_where_that_cannot_be_told(self, monkeypatch):
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        assert usable_cores() == os.cpu_count()


@pytest.mark.django_db
class TestServer:
    @pytest.mark.skipif(not HAS_SERVER, reason="SQLite has no server")
    def test_which_allows_fewer_connections_than_are_needed(self, settings):
        allowed = connections_allowed(connection)
        of_worker = allowed if KIND == "mariadb" else allowed - 1
        # All but 1 for the supervisor, 2 for each of the others and for coroutines.
        settings.ROBUST_QUEUE = {"workers": [{"threads": of_worker - 9}]}
        assert check_databases(databases=["default"]) == []
        settings.ROBUST_QUEUE = {"workers": [{"threads": of_worker - 8}]}
        [message] = check_databases(databases=["default"])
        assert message.id == "robust_queue.W009"
        assert message.msg == (
            f"One supervisor and its processes need up to {allowed + 1} connections to"
            f" database 'default', whose server allows {allowed} in all."
        )
        assert message.hint.startswith("Run fewer threads or processes, or raise")

    @pytest.mark.skipif(HAS_SERVER, reason="of SQLite only")
    def test_sqlite_has_none(self, settings):
        settings.ROBUST_QUEUE = {"workers": [{"threads": 100_000}]}
        assert connections_allowed(connection) is None
        assert check_databases(databases=["default"]) == []

    @pytest.mark.skipif(KIND != "postgresql", reason="of PostgreSQL only")
    def test_places_of_administrators_are_not_for_the_queue(self):
        with connection.cursor() as cursor:
            cursor.execute("SHOW max_connections")
            (limit,) = cursor.fetchone()
            cursor.execute("SHOW superuser_reserved_connections")
            (reserved,) = cursor.fetchone()
        assert int(reserved) > 0
        assert connections_allowed(connection) == int(limit) - int(reserved)

    @pytest.mark.skipif(KIND != "mariadb", reason="of MariaDB only")
    def test_a_user_may_have_a_limit_of_its_own(self):
        user = f"few_{os.getpid()}"
        limited = connections.create_connection("default")
        limited.settings_dict = {**limited.settings_dict, "USER": user, "NAME": ""}
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE USER {user} WITH MAX_USER_CONNECTIONS 7")
            try:
                assert connections_allowed(limited) == 7
                assert connections_allowed(connection) > 7
            finally:
                limited.close()
                cursor.execute(f"DROP USER {user}")
