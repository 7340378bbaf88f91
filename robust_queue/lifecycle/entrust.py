"""Ready ──▶ claimed by a worker outside: what it is told of its jobs.

From the moment a job is told of, its task may have begun. So it has passed every gate
that it would pass in a worker of our own: pauses of its queue and of its task, limits,
rates, deadlines. And its arguments can be told.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

from django.utils import timezone

from robust_queue import policies
from robust_queue.arguments import plain_call
from robust_queue.exceptions import DeserializationError, TaskExpired
from robust_queue.models import ClaimedExecution
from robust_queue.stores import store_for
from robust_queue.stores.conflicts import retried
from robust_queue.stores.rows import Claim

from . import announce, elsewhere, rates
from .claim import Claiming
from .enlist import ExternalWorker
from .moments import instant
from .pause_task import paused_tasks, set_aside
from .perform import Attempt
from .policy import policy_for
from .receipts import Receipt, claims_in
from .release import release
from .settle import settle
from .unique import unlock_at_start

# Seconds for which jobs that are turned away at the gates are followed by others.
PATIENCE = 1.0
# What is told in one answer; arguments may take a megabyte each, and much more memory
# when they are read.
MOST_LETTERS = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which jobs a worker has asked for, and how many."""

    queues: Sequence[str]
    limit: int
    request_id: UUID | None = None
    is_likely: bool = True
    # Queues whose partitions take turns, with the one served last, and the turn it is.
    partitioned: Mapping[str, str] = field(default_factory=dict)
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrusted:
    """A job that a worker outside has now."""

    claim: Claim
    receipt: Receipt
    args: list[Any]
    kwargs: dict[str, Any]
    # When the time of this attempt is up, in whichever way.
    ends_at: datetime | None


class Taken(NamedTuple):
    """What a worker has got."""

    jobs: list[Entrusted]
    # All that was there for so long was turned away, and there may be more.
    has_more: bool = False


def entrust(database: str, worker: ExternalWorker, wanted: Wanted) -> Taken:
    """Claim jobs for a worker, which is to begin them at once.

    Who asks again under the same ``request_id``, because no answer came, is told of the
    same jobs again, if there were any. Behind what is of no use any more, or has to
    wait, others may be ready: they are looked for at once.
    """
    again = told_before(database, worker, wanted.request_id)
    if again:
        return Taken(again)
    until = time.monotonic() + PATIENCE
    while True:
        claims, claimed_at = _claimed(database, worker, wanted)
        let_in = _past_the_gates(database, claims, worker.name)
        mine = _confirmed(database, let_in, wanted.request_id)
        jobs = list(_told(database, [(each, claimed_at) for each in mine], worker.name))
        for each in jobs:
            _begin(database, each.claim, worker.name)
        if jobs or not claims:
            return Taken(jobs)
        if time.monotonic() >= until:
            return Taken([], has_more=True)


def told_before(
    database: str, worker: ExternalWorker, request_id: UUID | None
) -> list[Entrusted]:
    """What it has of an earlier request of that name, whose answer got lost."""
    if request_id is None:
        return []
    rows = ClaimedExecution.objects.using(database).filter(process_id=worker.id)
    claims = list(claims_in(rows.filter(token=request_id)))
    for claim, _ in claims:
        # The first request may have come no farther, or still wait for somebody who was
        # told in an open transaction that the job has not begun.
        unlock_at_start(claim, database=database)
    return list(_told(database, claims, worker.name))


def _claimed(
    database: str, worker: ExternalWorker, wanted: Wanted
) -> tuple[list[Claim], datetime]:
    claiming = Claiming(
        process_id=worker.id,
        queues=wanted.queues,
        limit=wanted.limit,
        partitioned=wanted.partitioned,
        turn=wanted.turn,
    )
    facts = claiming.facts()
    claims = store_for(database).claim(**facts, is_likely=wanted.is_likely)
    return _tellable(database, claims), facts["now"]


def _tellable(database: str, claims: list[Claim]) -> list[Claim]:
    """As many of them as go into one answer, and one at least. Others go back."""
    sizes = accumulate(len(each.arguments) for each in claims)
    few = max(sum(size <= MOST_LETTERS for size in sizes), 1)
    release(database, claims[few:])
    return claims[:few]


# ── The gates ──────────────────────────────────────────────────────────────────


def _past_the_gates(
    database: str, claims: Sequence[Claim], worker_id: str
) -> list[Claim]:
    if not claims:
        return []
    paused = paused_tasks(database)
    if not paused.isdisjoint(each.task_path for each in claims):
        claims = set_aside(database, claims, worker_id=worker_id)
    if rates.limited(claims):
        claims = rates.admitted(database, claims, worker_id=worker_id)
    return list(_in_time(database, claims, worker_id))


def _in_time(database: str, claims: Sequence[Claim], worker_id: str) -> Iterator[Claim]:
    """Those that are still of use. The others have failed, and are told of."""
    for each in claims:
        now = datetime.now(UTC)
        ends = policies.expires_at(policy_for(each), instant(each.enqueued_at))
        if ends is None or now <= ends:
            yield each
            continue
        error = TaskExpired(f"The job came to run {now - ends} after its deadline.")
        _fail(database, each, error, worker_id)


def _fail(database: str, claim: Claim, error: Exception, worker_id: str) -> None:
    failed = elsewhere.failed(
        claim,
        error,
        database=database,
        worker_id=worker_id,
        policy=policy_for(claim),
        started_at=timezone.now(),
    )
    if settle(database, [failed.outcome]):
        failed.announce()


def _confirmed(
    database: str, claims: list[Claim], request_id: UUID | None
) -> list[Claim]:
    """Those that nobody has taken back meanwhile, found by the name of the request.

    They are not found by it before: who dies at the gates leaves claims that no
    repeated request is told of.
    """
    ids = [each.job_id for each in claims]
    rows = ClaimedExecution.objects.using(database).filter(pk__in=ids)
    mine = rows.filter(token__in={each.token for each in claims})
    if request_id is None:
        # To begin one would let go of what is kept for it until then.
        has_locks = any(each.unique_key for each in claims)
        return _still_there(mine, claims) if has_locks else claims
    named = [replace(each, token=request_id) for each in claims]
    if named and retried(database, partial(mine.update, token=request_id)) < len(ids):
        return _still_there(rows.filter(token=request_id), named)
    return named


def _still_there(rows: Any, claims: Sequence[Claim]) -> list[Claim]:
    held = set(rows.values_list("pk", flat=True))
    return [each for each in claims if each.job_id in held]


# ── What is told ───────────────────────────────────────────────────────────────


def _told(
    database: str, claims: Sequence[tuple[Claim, datetime]], worker_id: str
) -> Iterator[Entrusted]:
    """Claims and since when they are held, in words. Those that have none have failed.

    If they stayed, whoever asks would get no answer at all, again and again.
    """
    for claim, claimed_at in claims:
        try:
            args, kwargs = _call_of(claim)
        except DeserializationError as error:
            _fail(database, claim, error, worker_id)
            continue
        yield Entrusted(
            claim=claim,
            receipt=Receipt(claim.token, claim.attempts, claimed_at),
            args=args,
            kwargs=kwargs,
            ends_at=ends_at(claim, claimed_at),
        )


def _call_of(claim: Claim) -> tuple[list[Any], dict[str, Any]]:
    try:
        call = plain_call(claim.arguments)
        json.dumps(call)
    except (ValueError, TypeError, RecursionError) as error:
        raise DeserializationError(f"They cannot be told as JSON: {error}.") from error
    return call


def _begin(database: str, claim: Claim, worker_id: str) -> None:
    unlock_at_start(claim, database=database)
    attempt = Attempt(claim, database=database, worker_id=worker_id)
    if attempt.is_heard("task_started"):
        announce.started(attempt.result)


def ends_at(claim: Claim, claimed_at: datetime) -> datetime | None:
    """When the time of an attempt is up that began with its claim."""
    enqueued_at, began = instant(claim.enqueued_at), instant(claimed_at)
    return policies.ends_at(policy_for(claim), enqueued_at, now=began)
