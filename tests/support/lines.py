"""A line to the server of the default database, for those that spoil what it carries.

Whoever uses it connects to a door of its own; every call is carried on to the server by
two threads, one for each direction.
"""

import shutil
import socket
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

from django.db import connections

SIZE = 1 << 20
PORT = "5432"


class Call:
    """A client and the server, connected. Every byte is passed on."""

    def __init__(self, client, server):
        self.client, self.server = client, server

    def request(self, data):
        self.server.sendall(data)

    def reply(self, data):
        self.client.sendall(data)

    def end(self):
        """What happens when either side has hung up, or cannot be reached."""
        self.hang_up()

    def hang_up(self):
        for side in (self.client, self.server):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


class Line:
    """Takes calls at its door until closed."""

    def __init__(self, folder):
        self._place = connections.settings["default"]
        self._door = Path(folder) / f".s.PGSQL.{PORT}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._door))
        self._listener.listen(100)
        self._threads = []
        self.calls = []

    @property
    def settings(self):
        """What a supervisor is told to use this line."""
        is_postgresql = connections["default"].vendor == "postgresql"
        host = self._door.parent if is_postgresql else self._door
        return {"database": {"HOST": str(host), "PORT": PORT}}

    def call(self, client, server):
        """What becomes of a call; an heir may have calls of its own."""
        return Call(client, server)

    def open(self):
        self._start(self._take_calls)

    def close(self):
        """Hang up, and leave nothing behind."""
        _shut(self._listener)
        self._threads[0].join()
        for call in self.calls:
            call.hang_up()
        for thread in self._threads:
            thread.join()
        for call in self.calls:
            call.client.close()
            call.server.close()

    def _take_calls(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._connect(client)

    def _connect(self, client):
        try:
            server = _connected(self._place["HOST"], self._place["PORT"])
        except OSError:
            # The server is away, as the client will see.
            client.close()
            return
        call = self.call(client, server)
        self.calls.append(call)
        self._start(_carry, call, client, call.request)
        self._start(_carry, call, server, call.reply)

    def _start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


def _carry(call, side, onwards):
    with suppress(OSError):
        while data := side.recv(SIZE):
            onwards(data)
    call.end()


def _connected(host, port):
    if not host.startswith("/"):
        return socket.create_connection((host, int(port)))
    server = socket.socket(socket.AF_UNIX)
    is_folder = Path(host).is_dir()
    try:
        server.connect(f"{host}/.s.PGSQL.{port}" if is_folder else host)
    except OSError:
        server.close()
        raise
    return server


def _shut(listener):
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@contextmanager
def opened(kind, **options):
    """A line of that kind, open for the block."""
    # Not in the folder of the test: the path of a socket may not be long.
    folder = tempfile.mkdtemp(prefix="rq-line-", dir="/tmp")
    try:
        line = kind(folder, **options)
        line.open()
        try:
            yield line
        finally:
            line.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
