"""Workers outside: plain HTTP over connections that stay open, and nothing of ours."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from uuid import uuid4

from benchmarks.api.serving import HOST
from benchmarks.marks import mark

WORKERS = 4
SECONDS_TO_BEGIN = 30.0
SECONDS_TO_WAIT = 10


def work(port: int, batch: int, token: str) -> None:
    """Work off the queue, so many jobs at a time, until somebody ends the process."""
    _await_server(port)
    with ThreadPoolExecutor(WORKERS) as threads:
        ends = [threads.submit(_work, port, batch, token) for _ in range(WORKERS)]
        for end in ends:
            end.result()


def _await_server(port: int) -> None:
    deadline = time.monotonic() + SECONDS_TO_BEGIN
    while True:
        try:
            HTTPConnection(HOST, port).connect()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _work(port: int, batch: int, token: str) -> None:
    server = _Server(port, token)
    worker = server.post("workers")
    server.bearer, path = worker["secret"], f"workers/{worker['id']}"
    room = {"limit": batch, "wait": SECONDS_TO_WAIT}
    while True:
        # As every good worker does, so that no lost answer leaves jobs behind.
        wanted = {**room, "request_id": str(uuid4())}
        if jobs := server.post(f"{path}/dequeue", wanted)["jobs"]:
            _perform(server, path, jobs)


def _perform(server: "_Server", path: str, jobs: list[dict[str, Any]]) -> None:
    for each in jobs:
        mark(*each["args"])
    told = [
        {"job": each["id"], "token": each["token"], "outcome": "succeeded"}
        for each in jobs
    ]
    answers = server.post(f"{path}/outcomes", {"outcomes": told})["outcomes"]
    if lost := [each for each in answers if not each["recorded"]]:
        raise RuntimeError(f"{len(lost)} outcomes were not recorded.")


class _Server:
    """The API at one connection."""

    def __init__(self, port: int, bearer: str) -> None:
        self.bearer = bearer
        self._connection = HTTPConnection(HOST, port, timeout=60)

    def post(self, path: str, body: Any = None) -> Any:
        headers = {
            "Authorization": f"Bearer {self.bearer}",
            "Content-Type": "application/json",
        }
        sent = json.dumps(body or {}).encode()
        self._connection.request("POST", f"/queue/v1/{path}", sent, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{answer.status} for {path}: {content[:200]!r}")
        return json.loads(content)
