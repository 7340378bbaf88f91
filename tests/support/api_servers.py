"""Real web servers of the API, and lines to them."""

import http.client
import json
import socket
import sys
from contextlib import contextmanager

from tests.support.web_servers import WebServer

THREADS = 16
SERVERS = {
    "uvicorn": ("uvicorn", "--factory", "--lifespan", "off", "--uds", "{door}"),
    "gunicorn": (
        *("gunicorn", "--worker-class", "gthread", "--threads", str(THREADS)),
        *("--bind", "unix:{door}"),
    ),
}
APPLICATIONS = {
    "uvicorn": "django.core.asgi:get_asgi_application",
    "gunicorn": "django.core.wsgi:get_wsgi_application()",
}


class ApiServer(WebServer):
    """A server of the API that runs nothing else."""

    def __init__(self, folder, kind, *, settings=None, **options):
        served = {"urls": "tests.urls", **(settings or {})}
        super().__init__(folder, "uvicorn", settings=served, **options)
        line = [each.format(door=self.door) for each in SERVERS[kind]]
        self.command = [sys.executable, "-m", *line, APPLICATIONS[kind]]


class Connection(http.client.HTTPConnection):
    """One to the door of a server, for calls of a worker."""

    def __init__(self, door, bearer, path="/queue/v1/workers"):
        super().__init__("localhost", timeout=30)
        self.door, self.bearer, self.path = door, bearer, path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.door))

    def send_call(self, name="", **told):
        headers = {
            "Authorization": f"Bearer {self.bearer}",
            "Content-Type": "application/json",
        }
        self.request("POST", self.path + name, json.dumps(told), headers)

    def call(self, name="", **told):
        self.send_call(name, **told)
        answer = self.getresponse()
        content = answer.read()
        assert answer.status < 300, content
        return json.loads(content)


@contextmanager
def closed(door):
    try:
        yield door
    finally:
        door.close()
