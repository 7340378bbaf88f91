"""Real web servers with the queue inside, at a unix socket of their own."""

import http.client
import socket
import sys
import tempfile
from pathlib import Path

from tests.support.supervisors import ROOT, Supervised

COMMANDS = {
    "uvicorn": ["uvicorn", "--uds", "{door}", "tests.testapp.embedding:asgi"],
    "gunicorn": [
        *("gunicorn", "--bind", "unix:{door}"),
        *("--config", str(ROOT / "tests/testapp/gunicorn_conf.py")),
        "tests.testapp.embedding:wsgi",
    ],
}


class WebServer(Supervised):
    """A server, watched as a supervisor is."""

    command = ()

    def __init__(self, folder, kind, **options):
        super().__init__(folder, **options)
        # The path of a socket may not be long.
        self.door = Path(tempfile.mkdtemp(prefix="rq-web-", dir="/tmp")) / "door"
        program, *arguments = COMMANDS[kind]
        arguments = [each.format(door=self.door) for each in arguments]
        self.command = [sys.executable, "-m", program, *arguments]

    def answers(self):
        """Does it serve pages? One that is not there is an answer, too."""
        client = _Client(self.door)
        try:
            client.request("GET", "/nowhere")
            return client.getresponse().status == 404
        except OSError:
            return False
        finally:
            client.close()


class _Client(http.client.HTTPConnection):
    def __init__(self, door):
        super().__init__("localhost", timeout=5)
        self._door = door

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(str(self._door))
