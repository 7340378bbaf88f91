"""A proxy on which answers get lost: the server has done what it was asked for.

Like others it writes the date by its own clock, and that may be wrong.
"""

import http.client
import json
import math
import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LossyProxy(ThreadingHTTPServer):
    """Forgets one answer of so many, and hangs up instead."""

    daemon_threads = True

    def __init__(self, port, *, every, date):
        super().__init__(("127.0.0.1", 0), _Call)
        self.port, self.date, self._every = port, date, every
        # What becomes of the facts in answers to a dequeue.
        self.changes = []
        # The ends of paths, each for one answer to be lost.
        self.loses = []
        # Of more jobs no answer tells that gets through.
        self.largest = 100
        # The ends of the paths of everything that was asked for, and with what.
        self.sent, self.bodies = [], []
        self._passed, self.lost = 0, 0
        self._lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/queue/"

    def is_too_large(self, end, content):
        return end == "dequeue" and len(json.loads(content)["jobs"]) > self.largest

    def changed(self, end, content):
        """What is passed on of an answer."""
        if end != "dequeue" or not self.changes:
            return content
        facts = json.loads(content)
        for change in self.changes:
            change(facts)
        return json.dumps(facts).encode()

    def is_unlucky(self, end):
        with self._lock:
            self._passed += 1
            is_lost = self._passed % self._every == 0 or end in self.loses
            if end in self.loses:
                self.loses.remove(end)
            self.lost += is_lost
            return is_lost


class _Call(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        end = self.path.rpartition("/")[2]
        self.server.sent.append(end)
        self.server.bodies.append((end, json.loads(body or b"null")))
        server = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            headers = {name: value for name, value in self.headers.items() if value}
            server.request(self.command, self.path, body, headers)
            answer = server.getresponse()
            content = answer.read()
            if self.server.is_too_large(end, content):
                self.send_error(HTTPStatus.BAD_GATEWAY)
            else:
                self._answer(end, answer, self.server.changed(end, content))
        except (OSError, http.client.HTTPException):
            # One of the two has hung up, and the other will see it.
            self.close_connection = True
        finally:
            server.close()

    do_GET = do_POST = do_DELETE = _pass_on  # noqa: N815 (where it is looked for)

    def _answer(self, end, answer, content):
        if self.server.is_unlucky(end):
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        self.send_header("Date", self.server.date or self.date_time_string())
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@contextmanager
def lossy_proxy(port, *, every=math.inf, date=None):
    """A proxy to the server at that port, for the block."""
    with LossyProxy(port, every=every, date=date) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
