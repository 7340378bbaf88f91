"""A program outside ──▶ a worker that is known ──▶ gone.

It has a row among the processes, like any worker, and is struck off like any other if
it is silent for too long. Whatever it calls for tells that it is alive.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from robust_queue.configuration import current
from robust_queue.models import Cancellation, ClaimedExecution, Process
from robust_queue.models.processes import EXTERNAL
from robust_queue.stores import store_for
from robust_queue.stores.conflicts import retried

from . import recover
from .moments import instant
from .release import release
from .tune import Orders, Wish

NAME_LENGTH = 100
# Seconds for which a heartbeat holds: who calls often writes no row each time.
FRESH_FOR = 1.0
# Claims as young as that may be on their way to a worker that has not heard of them.
YOUNG_FOR = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWorker:
    """A worker outside, as its row tells of it."""

    id: UUID
    name: str
    queues: Sequence[str]
    # By which API token it was let in.
    token_id: UUID | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    # What was asked of it when its row was read.
    orders: Orders = field(default_factory=Orders)
    # Somebody wanted a job of its own to end by then.
    is_to_cancel: bool = False
    # It had been heard of a moment before.
    is_fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What a worker hears when it calls."""

    # False: it was taken for dead. What it had runs elsewhere; it has to start anew.
    is_alive: bool
    # Jobs of its own that somebody wants to end.
    cancelled: Sequence[UUID] = ()
    orders: Orders = field(default_factory=Orders)

    @property
    def is_quiet(self) -> bool:
        """Is it to get nothing new?"""
        wish = self.orders.wish
        return self.orders.is_to_stop or (wish is not None and wish.is_quiet)


def enlist(
    database: str,
    *,
    queues: Sequence[str],
    name: str = "",
    version: str = "",
    hostname: str = "",
    pid: int = 0,
    token_id: UUID | None = None,
) -> ExternalWorker:
    """Write down a new worker that serves these queues, and by whose leave."""
    identity = uuid4()
    facts = {
        "queues": list(queues),
        "version": version,
        "api_token": str(token_id) if token_id else None,
    }
    told = {key: value for key, value in facts.items() if value}
    row = Process.objects.using(database).enlist(
        identity=identity,
        # Two may have the same name, and rows may not.
        name=f"{name[:NAME_LENGTH] or 'external'}-{identity.hex[-8:]}",
        pid=pid,
        hostname=hostname[:255],
        metadata=json.dumps(told),
    )
    return _told(identity, row.name, row.metadata)


def external_worker(
    database: str, identity: UUID, *, fresh_for: float = FRESH_FOR
) -> ExternalWorker | None:
    """The worker of that id, and what is asked of it, unless it is gone.

    It counts as fresh if it was heard of within so many seconds.
    """
    known = store_for(database).attendance(
        identity, kind=EXTERNAL, fresh_for=min(fresh_for, valid_for() / 10)
    )
    if known is None:
        return None
    wish = Wish(is_quiet=known.is_quiet) if known.is_tuned else None
    return _told(
        identity,
        known.name,
        known.metadata,
        orders=Orders(wish, known.is_to_stop),
        is_to_cancel=known.is_to_cancel,
        is_fresh=known.is_fresh,
    )


def ping(
    database: str,
    worker: ExternalWorker,
    held: Collection[UUID] | None = None,
    *,
    as_of: datetime | None = None,
) -> Pulse:
    """The worker is alive, and holds these jobs, if it says so, as of that moment.

    Those that it does not know of go back: the answer that told it of them got lost.
    """
    if not prolong(database, worker):
        return Pulse(is_alive=False)
    if held is not None:
        _give_back_unknown(database, worker, held, as_of)
    _show_what_it_does(database, worker)
    cancelled = _cancelled_of(database, worker.id) if worker.is_to_cancel else ()
    return Pulse(is_alive=True, cancelled=cancelled, orders=worker.orders)


def prolong(database: str, worker: ExternalWorker) -> bool:
    """Whatever it has called for, it lives; False if it was taken for dead."""
    return worker.is_fresh or Process.objects.using(database).beat(worker.id)


def dismiss(database: str, worker: ExternalWorker) -> int:
    """The worker leaves: what it has goes back. Returns how many jobs that were."""

    def change() -> int:
        # In one transaction, so that nothing is left to nobody if it gets no farther.
        with transaction.atomic(using=database):
            # First of all: a claim that is on its way to it then comes to nothing.
            Process.objects.using(database).strike_off(worker.id)
            return len(release(database, recover.claims_of(database, worker.id)))

    return retried(database, change)


def valid_for() -> float:
    """Seconds of silence after which a worker is taken for dead."""
    return current().process_alive_threshold.total_seconds()


def ping_every() -> float:
    """Seconds after which a worker had better call again."""
    return min(60.0, valid_for() / 3)


def _cancelled_of(database: str, identity: UUID) -> list[UUID]:
    """The jobs of a worker that somebody has asked to end."""
    requests = Cancellation.objects.using(database).values("job_id")
    held = ClaimedExecution.objects.using(database).filter(process_id=identity)
    return list(held.filter(pk__in=requests).values_list("pk", flat=True))


def _show_what_it_does(database: str, worker: ExternalWorker) -> None:
    """Whether it is quiet, in its row, as workers of our own do."""
    wish = worker.orders.wish
    is_quiet = wish is not None and wish.is_quiet
    if is_quiet != bool(worker.facts.get("quiet")):
        facts = {**worker.facts, "quiet": is_quiet}
        rows = Process.objects.using(database).filter(pk=worker.id)
        rows.update(metadata=json.dumps(facts))


def _give_back_unknown(
    database: str,
    worker: ExternalWorker,
    held: Collection[UUID],
    as_of: datetime | None,
) -> None:
    now = datetime.now(UTC)
    # A list may have been on its way for long: of what was given out meanwhile it does
    # not tell.
    until = min(as_of or now, now)
    claims = recover.claims_of(database, worker.id)
    strangers = [each for each in claims if each.job_id not in held]
    old = [it for it in strangers if instant(it.started_at) + YOUNG_FOR < until]
    release(database, old)


def _told(identity: UUID, name: str, metadata: str, **more: Any) -> ExternalWorker:
    facts = json.loads(metadata)
    token = facts.get("api_token")
    return ExternalWorker(
        id=identity,
        name=name,
        queues=tuple(facts["queues"]),
        token_id=UUID(token) if token else None,
        facts=facts,
        **more,
    )
