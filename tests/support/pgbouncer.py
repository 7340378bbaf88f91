"""PgBouncer in front of the PostgreSQL server of the default database.

In transaction mode any two transactions may meet different sessions of the server, and
a session that was told to LISTEN soon belongs to somebody else.
"""

from contextlib import contextmanager

from django.db import connections

from tests.private_servers import PGBOUNCER_PORT, pgbouncer_server


class PgBouncer:
    """The pooler, which the test may stop and start."""

    def __init__(self, server):
        self._server = server

    @property
    def settings(self):
        """What a supervisor is told, as Django's documentation has it for poolers."""
        place = {"HOST": str(self._server.folder), "PORT": str(PGBOUNCER_PORT)}
        return {"database": {**place, "DISABLE_SERVER_SIDE_CURSORS": True}}

    def stop(self):
        self._server.stop()

    def start(self):
        self._server.start()


@contextmanager
def pgbouncer(mode="transaction"):
    """Run PgBouncer for the block; "session" is its other mode of use."""
    behind = connections.settings["default"]
    with pgbouncer_server(
        f"pool_mode = {mode}",
        target=f"host={behind['HOST']} port={behind['PORT']}",
        users=f"{_quoted(behind['USER'])} {_quoted(behind['PASSWORD'])}\n",
    ) as server:
        yield PgBouncer(server)


def _quoted(text):
    return '"' + text.replace('"', '""') + '"'
