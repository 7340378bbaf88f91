"""A line to the database server on which replies get lost.

The server has done what it was asked for; whoever asked finds the line broken.
"""

import random
import shutil
import socket
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

from django.db import connections

# What a client sends when it changes something, on PostgreSQL and on MariaDB.
CHANGES = {
    "postgresql": (b"INTO robust_queue_claimed", b"INTO robust_queue_finished"),
    "mysql": (b"COMMIT",),
}
SIZE = 1 << 20


class LossyLine:
    """Passes everything on, and forgets some of the replies to changes."""

    def __init__(self, folder, *, probability, seed):
        self._changes = CHANGES[connections["default"].vendor]
        self._probability = probability
        self._random = random.Random(seed)
        self._server = connections.settings["default"]
        self._door = Path(folder) / ".s.PGSQL.5432"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._door))
        self._listener.listen(100)
        self.lost = 0

    @property
    def settings(self):
        """What a supervisor is told to use this line."""
        is_postgresql = connections["default"].vendor == "postgresql"
        host = self._door.parent if is_postgresql else self._door
        return {"database": {"HOST": str(host), "PORT": "5432"}}

    def serve(self):
        """Answer until closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._start(self._carry_requests, client, self._connect())

    def close(self):
        self._probability = 0.0
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _connect(self):
        host, port = self._server["HOST"], self._server["PORT"]
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        server = socket.socket(socket.AF_UNIX)
        is_folder = Path(host).is_dir()
        server.connect(f"{host}/.s.PGSQL.{port}" if is_folder else host)
        return server

    def _start(self, work, *arguments):
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _carry_requests(self, client, server):
        is_to_be_lost = threading.Event()
        self._start(self._carry_replies, server, client, is_to_be_lost)
        with suppress(OSError):
            while request := client.recv(SIZE):
                if self._is_unlucky(request):
                    is_to_be_lost.set()
                server.sendall(request)
        _hang_up(server)

    def _carry_replies(self, server, client, is_to_be_lost):
        with suppress(OSError):
            while reply := server.recv(SIZE):
                if is_to_be_lost.is_set():
                    self.lost += 1
                    break
                client.sendall(reply)
        _hang_up(client)
        _hang_up(server)

    def _is_unlucky(self, request):
        is_change = any(change in request for change in self._changes)
        return is_change and self._random.random() < self._probability


def _hang_up(line):
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()


@contextmanager
def lossy_line(*, probability, seed=0):
    """A line for the block."""
    # Not in the folder of the test: the path of a socket may not be long.
    folder = tempfile.mkdtemp(prefix="rq-line-", dir="/tmp")
    line = LossyLine(folder, probability=probability, seed=seed)
    answering = threading.Thread(target=line.serve, daemon=True)
    answering.start()
    try:
        yield line
    finally:
        line.close()
        answering.join()
        shutil.rmtree(folder, ignore_errors=True)
