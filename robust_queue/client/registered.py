"""``Registered``: the calls of a worker that the queue knows.

Each may be repeated, and is, for as long as its patience lasts.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID, uuid4

import httpx

from .line import Line, told
from .patience import Patience
from .told import Answer, Pulse, Standing, Work

T = TypeVar("T")


class Registered:
    """A worker that has registered: its id, its secret, and what it may call for."""

    def __init__(
        self, line: Line, facts: Mapping[str, Any], patience: Patience
    ) -> None:
        self.id = UUID(facts["id"])
        self.name: str = facts["name"]
        self.queues: tuple[str, ...] = tuple(facts["queues"])
        # Seconds between two pings, as the queue recommends it.
        self.ping_every: float = facts["ping_every"]
        # Seconds of silence after which it is taken for dead.
        self.valid_for: float = facts["valid_for"]
        self._line, self._facts, self._patience = line, facts, patience

    def patient(self, patience: Patience) -> "Registered":
        """The same worker, with more patience or less."""
        return Registered(self._line, self._facts, patience)

    def ping(
        self, jobs: Sequence[str] | None = None, *, as_of: str | None = None
    ) -> Pulse:
        """Tell that it lives, and which jobs it holds if it likes to.

        ``as_of`` is the ``now`` of the latest answer that was heard before the list of
        them was made: they may be a while on their way.
        """
        body = {} if jobs is None else {"jobs": list(jobs), "as_of": as_of}
        return self._call("POST", "/ping", Pulse.read, body)

    def dequeue(
        self,
        limit: int = 1,
        *,
        wait: float = 0,
        request_id: UUID | None = None,
        queues: Sequence[str] = (),
    ) -> tuple[Pulse, list[Work]]:
        """Take up to so many jobs; wait so many seconds if there are none.

        If an answer gets lost, the next one tells of the same jobs.
        """
        body: dict[str, Any] = {"limit": limit, "wait": wait}
        body["request_id"] = str(request_id or uuid4())
        if queues:
            body["queues"] = list(queues)

        return self._call("POST", "/dequeue", _work_in, body, longer=wait)

    def heartbeat(self, job: str, token: str) -> Standing:
        """Tell that a job is being worked on; hear whether it still should be."""
        path = f"/jobs/{job}/heartbeat"
        return self._call("POST", path, Standing.read, {"token": token})

    def report(
        self, outcomes: Sequence[Mapping[str, Any]]
    ) -> tuple[bool, list[Answer]]:
        """Report up to 100 outcomes. Is it alive, and what has become of each?"""
        body = {"outcomes": list(outcomes)}
        return self._call("POST", "/outcomes", _answers_in, body)

    def dismiss(self) -> int:
        """Sign off. Returns how many jobs it still had, which have gone back."""
        return self._call("DELETE", "", lambda facts: int(facts["released"]))

    def _call(
        self,
        method: str,
        path: str,
        read: Callable[[Any], T],
        body: Any = None,
        **how: Any,
    ) -> T:
        def call() -> T:
            return told(self._send(method, path, body, **how), read)

        # What cannot be read is asked for again, too: it may be a proxy's.
        return self._patience(call)

    def _send(
        self, method: str, path: str, body: Any, *, longer: float = 0
    ) -> httpx.Response:
        path, secret = f"workers/{self.id}{path}", self._facts["secret"]
        return self._line.call(method, path, secret, body=body, longer=longer)


def _work_in(facts: Any) -> tuple[Pulse, list[Work]]:
    heard_at = time.monotonic()
    works = [Work.read({**each, "heard_at": heard_at}) for each in facts["jobs"]]
    return Pulse.read(facts), works


def _answers_in(facts: Any) -> tuple[bool, list[Answer]]:
    return facts["alive"], [Answer.read(each) for each in facts["outcomes"]]
