"""The web server of the demonstration, and somebody who looks at its pages."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

from django.urls import reverse

from .supervising import Managed

# Nobody else on the network is to come in with a password that everybody knows.
HOST = "127.0.0.1"
USUAL_PORT = 8000
SECONDS = 10


class WebServer(Managed):
    """``manage.py runserver``, with the style sheets and without a reloader."""

    def __init__(self, port: int, log: Path) -> None:
        self.address = f"http://{HOST}:{port}"
        super().__init__("runserver", "--noreload", f"{HOST}:{port}", log=log)


@contextmanager
def serving(log: Path) -> Iterator[WebServer]:
    """Run a web server for the block."""
    # Somebody may take the port before the server does. It ends then, and is missed.
    server = WebServer(free_port(), log)
    try:
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """The usual one, unless somebody has it."""
    try:
        return _bound(USUAL_PORT)
    except OSError:
        return _bound(0)


def _bound(port: int) -> int:
    with socket.socket() as probe:
        # As the server will: connections that have just ended are in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return int(probe.getsockname()[1])


class Program:
    """A program somewhere else, which has a token for the API."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        }

    def enqueue(self, call: dict[str, Any]) -> str:
        """Ask for a job, and return its id."""
        url = self._address + reverse("robust_queue_api:enqueue")
        # Both are about our own server.
        sent = Request(url, json.dumps(call).encode(), self._headers)  # noqa: S310
        with urlopen(sent, timeout=SECONDS) as answer:  # noqa: S310
            return str(json.load(answer)["id"])


class Visitor:
    """A browser without a window, which keeps its cookies."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._cookies = CookieJar()
        self._opener = build_opener(HTTPCookieProcessor(self._cookies))

    def is_let_in(self) -> bool:
        """Does the server answer at all?"""
        try:
            return self.look(reverse("admin:login"))[0] == 200  # noqa: PLR2004
        except URLError:
            return False

    def log_in(self, name: str, password: str) -> None:
        page = reverse("admin:login")
        self.look(page)
        token = next(each.value for each in self._cookies if each.name == "csrftoken")
        given = {"username": name, "password": password, "csrfmiddlewaretoken": token}
        self.look(page, urlencode(given).encode())

    def look(self, page: str, sent: bytes | None = None) -> tuple[int, str]:
        """The status of a page, and all of its text."""
        try:
            with self._opener.open(self._address + page, sent, SECONDS) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()
