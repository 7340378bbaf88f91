"""Claimed ──▶ begun, if the rate of its task lets it; else scheduled for later.

Every worker takes tokens from the same rows, in transactions of a few statements, so
a rate holds for all of them together. What a job needs was found out when it was
enqueued and is kept with it: nobody's code is called here, least of all under a lock.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from robust_queue import registry
from robust_queue.context import recorded_in, remembering
from robust_queue.declaration import Call
from robust_queue.fields import UtcField
from robust_queue.flow import RateLimit
from robust_queue.flow.buckets import Bucket, bucket_of
from robust_queue.flow.keys import fitting
from robust_queue.flow.rates import Demand, demand_of
from robust_queue.models import ClaimedExecution, RateBucket, ScheduledExecution
from robust_queue.models.processes import DatabaseNow
from robust_queue.stores.conflicts import retried
from robust_queue.stores.rows import Claim

from .moments import as_stored
from .send_away import sent_away
from .settle import settle

logger = logging.getLogger("robust_queue")

NAME = "rate"


# ── Enqueue ────────────────────────────────────────────────────────────────────


def demanded(call: Call) -> dict[str, Any]:
    """What a new job has to remember of the rate of its task; mostly nothing."""
    limit: RateLimit | None = getattr(call.task, "rate_limit", None)
    if limit is None:
        return {}
    return {NAME: demand_of(limit, call.task, call.args, call.kwargs)}


def with_demand(metadata: str, call: Call) -> str:
    """What a new job remembers, and with it what it needs to begin."""
    demand = demanded(call)
    return remembering(metadata, **demand) if demand else metadata


# ── Before a job begins ────────────────────────────────────────────────────────


def limited(claims: Sequence[Claim]) -> set[str]:
    """The paths of those tasks among these that have a rate at all."""
    paths = {each.task_path for each in claims}
    return {path for path in paths if _limit_of(path) is not None}


def admitted(
    database: str, claims: Sequence[Claim], *, worker_id: str
) -> Sequence[Claim]:
    """Those of the claims that may begin now. The others go, and come back later.

    Nothing of them was begun: their attempt does not count, and nobody is told. Tokens
    of those that are not begun after all are lost.
    """
    later = dict[UUID, datetime]()
    # One transaction each: nobody waits for one bucket while he holds another.
    for (key, path), weights in sorted(_by_bucket(claims).items()):
        limit = _limit_of(path)
        if limit is not None:
            later |= retried(database, partial(_take, database, key, limit, weights))
    away = [each for each in claims if each.job_id in later]
    if away:
        told = [
            sent_away(each, until=later[each.job_id], worker_id=worker_id)
            for each in away
        ]
        settle(database, told)
        logger.debug("%d jobs are told to come back: their rate is used up.", len(away))
    return [each for each in claims if each.job_id not in later]


# What each of the jobs needs, first come, first served.
Weights: TypeAlias = dict[UUID, float]


def _by_bucket(claims: Sequence[Claim]) -> dict[tuple[str, str], Weights]:
    """The claims that need something, by the key of the bucket and by their task."""
    found = defaultdict[tuple[str, str], Weights](dict)
    for each in claims:
        limit = _limit_of(each.task_path)
        demand = _demand(each, limit) if limit else None
        if demand:
            found[demand.key, each.task_path][each.job_id] = demand.weight
    return found


def _limit_of(task_path: str) -> RateLimit | None:
    return getattr(registry.find(task_path), "rate_limit", None)


def _demand(claim: Claim, limit: RateLimit) -> Demand | None:
    recorded = recorded_in(claim.metadata)
    match recorded.get(NAME, ""):
        case None:
            return None
        case [str(key), int(weight) | float(weight)] if weight > 0:
            return Demand(fitting(key), limit.within_reach(weight))
    # Enqueued before the task had a limit: these are limited all together.
    value = "" if callable(limit.key) else limit.key
    weight = 1 if callable(limit.weight) else limit.weight
    return Demand(limit.key_of(claim.task_path, value), weight)


# ── Under the lock ─────────────────────────────────────────────────────────────


def _take(
    database: str, key: str, limit: RateLimit, weights: Weights
) -> dict[UUID, datetime]:
    """Take what there is; return when those that got nothing are to come back."""
    buckets = RateBucket.objects.using(database).filter(pk=key)
    with transaction.atomic(using=database):
        bucket = _locked(buckets, key, limit)
        # In a statement of its own: the one before may have waited for the lock, and
        # would tell a time at which somebody else has counted already.
        (now,) = buckets.values_list(DatabaseNow(output_field=UtcField()), flat=True)
        bucket.advance(_seconds(now))
        _forget_appointments_of_nobody(buckets, bucket)
        unmet = {job: each for job, each in weights.items() if not bucket.take(each)}
        later = {job: bucket.appointment(each) for job, each in unmet.items()}
        buckets.update(
            level=bucket.level,
            counted_at=_moment(bucket.counted_at),
            spread_to=_moment(bucket.spread_to) if bucket.spread_to else None,
            **({"last_id": list(later)[-1]} if later else {}),
        )
    return {job: _moment(each) for job, each in later.items()}


def _forget_appointments_of_nobody(
    buckets: QuerySet[RateBucket], bucket: Bucket
) -> None:
    """Begin anew if whoever was told to come last is not to come any more.

    A queue may have been cleared, and nobody is to stand behind those who are gone. If
    others are still to come, some will have to be told a second time.
    """
    if not bucket.is_far_ahead:
        return
    (last,) = buckets.values_list("last_id", flat=True)
    # In the direction of the arrow: it is claimed until whoever has told it so puts it
    # back, and may do so between the two questions.
    for waiting in (ClaimedExecution, ScheduledExecution):
        if waiting.objects.using(buckets.db).filter(pk=last).exists():
            return
    bucket.spread_to = 0.0


def _locked(buckets: QuerySet[RateBucket], key: str, limit: RateLimit) -> Bucket:
    """The bucket, which nobody else changes until the transaction ends."""
    locked = buckets.select_for_update().values_list("level", "counted_at", "spread_to")
    rows = list(locked)
    if not rows:
        # Of several who find none, one makes it; the others wait for that here.
        full = RateBucket(key=key, level=limit.size, counted_at=DatabaseNow())
        RateBucket.objects.using(buckets.db).bulk_create([full], ignore_conflicts=True)
        rows = list(locked.all())
    ((level, counted_at, spread_to),) = rows
    return bucket_of(
        limit,
        level=level,
        counted_at=_seconds(counted_at),
        spread_to=_seconds(spread_to) if spread_to else 0.0,
    )


def _seconds(moment: datetime) -> float:
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment, timezone.get_default_timezone())
    return moment.timestamp()


def _moment(seconds: float) -> datetime:
    return as_stored(datetime.fromtimestamp(seconds, UTC))
