"""An outcome ──▶ finished, failed, or scheduled for another attempt; exactly once."""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import DataError, Error, IntegrityError, connections, transaction
from django.utils import timezone

from robust_queue.models import Attempt, Job
from robust_queue.stores import store_for
from robust_queue.stores.conflicts import is_conflict
from robust_queue.stores.rows import Claim, Failed, Finished, Outcome

from .admit import promote_keys
from .claim import Claiming, claim_as_told
from .failure import failed_to_record

logger = logging.getLogger("robust_queue")

LARGE = 100_000  # characters; no server is configured to take less at a time
HANG_UPS = 3
MOST_TRACEBACKS = 50

T = TypeVar("T")


def settle(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """Record outcomes of claims that are still held; return whose they were.

    A claim that was lost meanwhile (its process was taken for dead, or someone settled
    it already) belongs to somebody else. Its outcome is dropped, and the log says so.
    An outcome that is already stored, because the reply to an earlier settle got lost,
    counts as held: to settle it again changes nothing and is no mistake.
    """
    held = settle_only(database, outcomes)
    promote_keys(database, (each.concurrency_key for each in outcomes))
    return held


def settle_and_claim(
    database: str, outcomes: Sequence[Outcome], claiming: Claiming
) -> tuple[set[UUID], list[Claim]]:
    """Record outcomes and take new jobs, in one transaction; see settle() and claim().

    If something in one of the outcomes is refused, nothing is taken this time. Who is
    next for slots that have become free is for the caller to find out.
    """
    # What is large may be sent several times, and must not take jobs each time.
    if not outcomes or not claiming.is_possible or _has_large(outcomes):
        return settle_only(database, outcomes), claim_as_told(database, claiming)
    store, claims = store_for(database), list[Claim]()
    try:
        held, claims = _tried(
            database, outcomes, lambda: store.exchange(outcomes, **claiming.facts())
        )
    except _RefusedError:
        held = _record(database, outcomes)
    held = _with_stored(database, outcomes, held=held)
    _shorten_the_past(database, outcomes)
    return held, claims


def settle_only(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """Likewise, but who is next for slots is for the caller to find out."""
    return _with_stored(database, outcomes, held=settle_now(database, outcomes))


def settle_now(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """Likewise, but what was recorded before is not counted as held."""
    held = _record(database, outcomes)
    _shorten_the_past(database, outcomes)
    return held


def _with_stored(
    database: str, outcomes: Sequence[Outcome], *, held: set[UUID]
) -> set[UUID]:
    if len(held) == len(outcomes):
        return held
    unheld = [each for each in outcomes if each.job_id not in held]
    stored = _already_stored(database, unheld)
    for outcome in unheld:
        if outcome.job_id not in stored:
            logger.warning(
                "Job %s is no longer this worker's: its outcome is not recorded.",
                outcome.job_id,
            )
    return held | stored


def _shorten_the_past(database: str, outcomes: Sequence[Outcome]) -> None:
    """Of very many attempts the first one and the latest ones keep their tracebacks.

    A task may be tried thousands of times, and fail with as many words each time.
    """
    for each in outcomes:
        if isinstance(each, Failed) and each.attempts > MOST_TRACEBACKS + 1:
            _forget_traceback(database, each.job_id, each.attempts - MOST_TRACEBACKS)


def _forget_traceback(database: str, job_id: UUID, attempt: int) -> None:
    attempts = Attempt.objects.using(database).filter(job_id=job_id, attempts=attempt)
    # What is kept for longer than necessary harms nobody.
    with suppress(Error), _savepoint(database):
        attempts.update(traceback="")


def _record(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """Record all at once; if something in one of them is refused, one by one.

    The others must not suffer for it, and the culprit must not stay claimed for ever.
    """
    store = store_for(database)
    try:
        return _tried(database, outcomes, lambda: store.settle(outcomes))
    except _RefusedError as refusal:
        if len(outcomes) == 1:
            culprit = failed_to_record(outcomes[0], refusal.reason)
            return store.settle([culprit])
    return set().union(*(_record(database, [each]) for each in outcomes))


def _tried(database: str, outcomes: Sequence[Outcome], record: Callable[[], T]) -> T:
    """Record all at once, or tell whether the server refused or went away.

    Drivers have many names for a refusal. A server that goes on to answer in the same
    session has refused; one that does not is away, which is nobody's fault. But MySQL
    hangs up on whoever sends more than it is willing to read, so something large is
    refused if that happens again and again.
    """
    chances = HANG_UPS if _has_large(outcomes) else 0
    while True:
        connections[database].ensure_connection()
        session = connections[database].connection
        try:
            with _savepoint(database):
                return record()
        except (DataError, IntegrityError) as error:
            raise _RefusedError(error) from error
        except Error as error:
            if is_conflict(error):
                raise
            if _goes_on(database, session):
                raise _RefusedError(error) from error
            if not chances or not _answers_anew(database):
                raise
            chances -= 1
            if not chances:
                raise _RefusedError(error) from error


class _RefusedError(Exception):
    """The database is there, and does not take this."""

    def __init__(self, reason: Error) -> None:
        self.reason = reason


def _goes_on(database: str, session: object) -> bool:
    # Behind a transaction that lost its session Django opens another one.
    connection = connections[database]
    return connection.connection is session and connection.is_usable()


def _answers_anew(database: str) -> bool:
    connection = connections[database]
    if connection.in_atomic_block:
        return False
    connection.close()
    with suppress(Error):
        connection.ensure_connection()
    return connection.connection is not None and connection.is_usable()


def _has_large(outcomes: Sequence[Outcome]) -> bool:
    return any(outcome.size > LARGE for outcome in outcomes)


def _savepoint(database: str) -> AbstractContextManager[Any]:
    """What an error must not spoil, if there is a transaction around this."""
    if connections[database].in_atomic_block:
        return transaction.atomic(using=database)
    return nullcontext()


# ── Replies that got lost ──────────────────────────────────────────────────────


def _already_stored(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """Those of the jobs in whose past this very attempt is written down.

    Which attempt it was, who made it and when it ended tells it from any other, in
    whatever table it is kept by now.
    """
    ends = past_of(database, [each.job_id for each in outcomes], "finished_at")
    return {
        each.job_id
        for each in outcomes
        if attempt_of(each.attempts, each.worker_id, each.finished_at)
        in ends.get(each.job_id, ())
        or (_leaves_no_trace(each) and each.job_id not in ends)
    }


def past_of(
    database: str, job_ids: Sequence[UUID], moment: str
) -> dict[UUID, set[Any]]:
    """The attempts of these jobs that are over; jobs that are gone are left out.

    Each as ``attempt_of()`` tells it from others, by when it began or when it ended.
    """
    names = ("attempts", "worker_id", moment)
    columns = [f"{table}__{name}" for table in _PAST for name in names]
    rows = Job.objects.using(database).filter(pk__in=job_ids)
    found: dict[UUID, set[Any]] = defaultdict(set)
    for job_id, *values in rows.values_list("id", *columns):
        for i in range(0, len(values), len(names)):
            found[job_id].add(attempt_of(*values[i : i + len(names)]))
    return found


_PAST = ("finished_execution", "failed_execution", "earlier_attempts")


def attempt_of(attempts: int | None, worker_id: str | None, at: datetime | None) -> Any:
    """Which attempt it was, who made it, and when: in whatever table it is kept."""
    # As databases give moments back: in a zone of their own choice, or in none.
    is_aware = at is not None and timezone.is_aware(at)
    return attempts, worker_id, at.astimezone(UTC) if at and is_aware else at


def _leaves_no_trace(outcome: Outcome) -> bool:
    return isinstance(outcome, Finished) and not outcome.keep
