"""``Client``: enqueue, look, count; and register as a worker."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4, uuid5

import httpx

from .line import Line, checked_token, told
from .patience import Patience
from .registered import Registered

Json = dict[str, Any]
# Calls in one request, and about how many letters: Django takes 2.5 MB.
AT_ONCE = 500
MOST_LETTERS = 2_000_000
T = TypeVar("T")


class Client:
    """A queue, at the address where a project has ``robust_queue.api.urls``.

    All calls can be repeated, and are, for ``patience`` seconds, when the queue cannot
    be reached or says that it is busy. All errors are ``ApiError``.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        using: str | None = None,
        timeout: float = 10.0,
        patience: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._line = Line(url, using=using, timeout=timeout, transport=transport)
        self._token = checked_token(token)
        self._patience = Patience(patience)

    def enqueue(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_after: datetime | timedelta | None = None,
        request_id: UUID | None = None,
    ) -> Json:
        """Enqueue a job of the task of that name, and return it.

        ``run_after`` is a moment with its time zone, or how much later than now.

        When the answer got lost it is asked for again, by the ``request_id``, a new one
        unless you give yours: the queue enqueues only once under each.
        """
        wishes = _wishes(queue, priority, run_after)
        body = _call(task, args, kwargs, request_id) | wishes
        return self._told("POST", "jobs", self._patience, _object, body=body)

    def enqueue_all(
        self,
        calls: Iterable[tuple[str, *tuple[Any, ...]]],
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_after: datetime | timedelta | None = None,
        request_id: UUID | None = None,
    ) -> list[Json]:
        """Enqueue many calls, some hundreds in a request; return their jobs in order.

        A call is a tuple of task, arguments and keyword arguments, of which the last
        two may be left out. Of the calls in a request all are enqueued, or none.

        An error may come when some requests are through. Give a ``request_id`` of yours
        to call again with the same calls: those that are there are not enqueued again.
        """
        wishes = _wishes(queue, priority, run_after)
        name = request_id or uuid4()
        bodies = (
            _call(*call, request_id=uuid5(name, str(at))) | wishes
            for at, call in enumerate(calls)
        )
        jobs: list[Json] = []
        for some in _batches(bodies):
            jobs += self._told(
                "POST", "jobs/enqueue", self._patience, _jobs, body={"jobs": some}
            )
        return jobs

    def job(self, id: str) -> Json:  # noqa: A002 (as the API has it)
        """One job, by its id."""
        return self._told("GET", f"jobs/{id}", self._patience, _object)

    def jobs(self, **filters: Any) -> Iterator[Json]:
        """All jobs that the filters let through, one by one, as they arrive."""
        with ExitStack() as stack:
            response = self._patience(
                lambda: stack.enter_context(
                    self._line.stream("jobs/stream", self._token, filters)
                )
            )
            # An empty one says that the queue is still looking.
            for line in filter(None, response.iter_lines()):
                yield json.loads(line)

    def count(self, **filters: Any) -> int:
        """How many jobs the filters let through.

        The queue counts for some seconds at a time, and is asked to go on until it is
        through.
        """
        total, place = 0, None
        while True:
            behind: Json = {} if place is None else {"behind": place}
            query = {**filters, **behind}
            more, place = self._told(
                "GET", "jobs/count", self._patience, _count, query=query
            )
            total += more
            if place is None:
                return total

    def register(
        self,
        *,
        queues: Sequence[str] = (),
        name: str = "",
        version: str = "",
        hostname: str = "",
        pid: int = 0,
        patience: Patience | None = None,
    ) -> Registered:
        """Register a worker. One of which no answer came is struck off by itself."""
        wishes: Json = {
            "queues": list(queues),
            "name": name,
            "version": version,
            "hostname": hostname,
            "pid": pid,
        }
        body = {name: wish for name, wish in wishes.items() if wish}
        patience = patience or self._patience

        def read(facts: Any) -> Registered:
            return Registered(self._line, facts, self._patience)

        return self._told("POST", "workers", patience, read, body=body)

    def close(self) -> None:
        """Close its connections."""
        self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _told(
        self,
        method: str,
        path: str,
        patience: Patience,
        read: Callable[[Any], T],
        **what: Any,
    ) -> T:
        call = self._line.call
        return patience(lambda: told(call(method, path, self._token, **what), read))


def _call(
    task: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    request_id: UUID | None = None,
) -> Json:
    return {
        "task": task,
        "args": list(args),
        "kwargs": dict(kwargs or {}),
        "request_id": str(request_id or uuid4()),
    }


def _batches(bodies: Iterable[Json]) -> Iterator[list[Json]]:
    """As many as go into one request, and one at least."""
    some: list[Json] = []
    room = MOST_LETTERS
    for body in bodies:
        room -= len(json.dumps(body))
        if some and (room < 0 or len(some) == AT_ONCE):
            yield some
            some, room = [], MOST_LETTERS - len(json.dumps(body))
        some.append(body)
    if some:
        yield some


def _wishes(
    queue: str | None, priority: int | None, run_after: datetime | timedelta | None
) -> Json:
    wishes = {
        "queue": queue,
        "priority": priority,
        "run_after": None if run_after is None else _moment(run_after),
    }
    return {name: wish for name, wish in wishes.items() if wish is not None}


def _moment(told: datetime | timedelta) -> str:
    moment = datetime.now(UTC) + told if isinstance(told, timedelta) else told
    if moment.tzinfo is None:
        raise ValueError(f"A moment without a time zone: {moment!r}.")
    return moment.isoformat()


def _object(facts: Any) -> Json:
    return {**facts}


def _jobs(facts: Any) -> list[Json]:
    return [{**each} for each in facts["jobs"]]


def _count(facts: Any) -> tuple[int, str | None]:
    return int(facts["count"]), facts.get("next")
