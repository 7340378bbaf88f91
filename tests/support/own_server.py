"""A database server of a test's own, which it may stop and start as it likes.

For as long as the test lasts, "default" is the name of a database on that server: for
the test itself, and for the supervisors that are given ``settings``.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connections

from tests import private_servers, services
from tests.support.supervisors import ROOT

# A server that crashes must not forget what it has confirmed, and what it was sent can
# be counted.
SERVERS = {
    "postgresql": lambda: private_servers.postgresql_server(
        "--synchronous_commit=on", "--log_statement=all"
    ),
    "mariadb": lambda: private_servers.mariadb_server(
        "--innodb-flush-log-at-trx-commit=2"
    ),
}
PLACES = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


class OwnServer:
    """The server, and a database on it with all tables."""

    def __init__(self, kind, server):
        # Made with the server; MariaDB has none that is not its own.
        name = "postgres" if kind == "postgresql" else "rq"
        entry = services.entry(kind, server.url, name)
        self._place = {key: entry[key] for key in PLACES}
        self._server = server
        self._is_migrated = False

    @property
    def settings(self):
        """What a supervisor is told."""
        return {"database": self._place}

    @property
    def log(self):
        """The file in which it tells what it does."""
        return self._server.log

    def stop(self, *, by_crash=False):
        connections["default"].close()
        self._server.crash() if by_crash else self._server.stop()

    def start(self):
        self._server.start()

    def freeze(self):
        connections["default"].close()
        self._server.freeze()

    def thaw(self):
        self._server.thaw()

    @contextmanager
    def as_default(self):
        """Be the default database of this process, empty at first."""
        settings = connections.settings["default"]
        before = {key: settings[key] for key in PLACES}
        # The very dictionary that the connections of all threads look into.
        connections["default"].close()
        settings.update(self._place)
        try:
            self._migrate()
            call_command("flush", verbosity=0, interactive=False)
            yield
        finally:
            connections["default"].close()
            settings.update(before)

    def _migrate(self):
        if self._is_migrated:
            return
        self._create()
        # Elsewhere: what Django remembers of content types belongs to the other server.
        subprocess.run(
            [sys.executable, "-m", "django", "migrate", "--verbosity=0"],
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.process_settings",
                "RQ_SUPERVISED": json.dumps(self.settings),
                "PYTHONPATH": str(ROOT),
            },
            check=True,
        )
        self._is_migrated = True

    def _create(self):
        if connections["default"].vendor == "mysql":
            settings = connections.settings["default"]
            settings["NAME"] = ""
            with connections["default"].cursor() as cursor:
                cursor.execute("CREATE DATABASE rq CHARACTER SET utf8mb4")
            connections["default"].close()
            settings.update(self._place)


@contextmanager
def own_server(kind):
    """Run a server for the block."""
    with SERVERS[kind]() as server:
        yield OwnServer(kind, server)
