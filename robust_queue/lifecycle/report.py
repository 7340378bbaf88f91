"""What a worker outside reports ──▶ finished, failed, timed out, or back to its queue.

A report names its claim. It is recorded once, however often it is sent: who sends it
again, because no answer came, is told that it was. If the claim is somebody else's by
now it changes nothing, and that is told too.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from robust_queue.exceptions import (
    Discard,
    ReportedError,
    Retry,
    TaskCancelled,
    TaskTimeout,
)
from robust_queue.models import ClaimedExecution
from robust_queue.stores.rows import Claim, Failed, Finished
from robust_queue.tracebacks import in_one_line

from . import elsewhere
from .admit import promote_keys
from .calls import is_kept, stored
from .cancel import withdraw
from .elsewhere import PerformedElsewhere
from .enlist import ExternalWorker
from .failure import CLASS_LENGTH, MESSAGE_LENGTH, shortened, storable
from .outside import Answer, End, NamedAttempt, Report
from .policy import terms_for
from .receipts import Receipt, claims_in
from .recurred import is_of_history
from .release import release
from .reported import answers_before
from .settle import settle_now


@dataclass(frozen=True, slots=True)
class Recorded:
    """An attempt whose end is written down now, with the claim that it had."""

    claim: Claim
    performed: PerformedElsewhere


def report(
    database: str, worker: ExternalWorker, reports: Sequence[Report]
) -> tuple[list[Answer], list[Recorded]]:
    """Record how attempts have ended; tell what has become of each, in their order.

    Also returns what was recorded now and not before.
    """
    held = _held(database, worker, reports)
    # Of several reports of one attempt the first counts; the others come too late.
    mine = {it.attempt: it for it in reversed(reports) if it.attempt in held}.values()
    back = [held[it.attempt] for it in mine if it.end is End.RELEASED]
    ended = [
        Recorded(held[it.attempt], _performed(database, held[it.attempt], it, worker))
        for it in mine
        if it.end is not End.RELEASED
    ]
    recorded = _record(database, ended)
    if worker.is_to_cancel:
        _withdraw_ended(database, recorded)
    known = dict.fromkeys(_released(database, back), "ready")
    known |= {each.claim.job_id: _state_after(each.performed) for each in recorded}
    answers = {
        each.attempt: Answer(each.job_id, True, known[each.job_id])
        for each in mine
        if each.job_id in known
    }
    others = [each for each in reports if each.attempt not in answers]
    answers |= answers_before(database, worker, others)
    return [answers[each.attempt] for each in reports], recorded


def claim_of(
    database: str, worker_id: UUID, job_id: UUID, receipt: Receipt
) -> Claim | None:
    """The claim that a receipt is of, if the worker still has it."""
    rows = ClaimedExecution.objects.using(database).filter(
        pk=job_id, process_id=worker_id
    )
    return _by_attempt(rows).get((job_id, receipt))


# ── What is held ───────────────────────────────────────────────────────────────


def _held(
    database: str, worker: ExternalWorker, reports: Sequence[Report]
) -> Mapping[NamedAttempt, Claim]:
    """What the worker has of these jobs: at most one claim of each."""
    ids = [each.job_id for each in reports]
    rows = ClaimedExecution.objects.using(database).filter(
        process_id=worker.id, pk__in=ids
    )
    return _by_attempt(rows)


def _by_attempt(rows: QuerySet[ClaimedExecution]) -> Mapping[NamedAttempt, Claim]:
    """Claims, and by what reports have to name them: also since when they are held.

    A worker may have had the same job before, under the same ``request_id``.
    """
    return {
        (claim.job_id, Receipt(claim.token, claim.attempts, since)): claim
        for claim, since in claims_in(rows)
    }


# ── What becomes of it ─────────────────────────────────────────────────────────


def _released(database: str, claims: Sequence[Claim]) -> Collection[UUID]:
    return release(database, claims) if claims else ()


def _record(database: str, ended: Sequence[Recorded]) -> list[Recorded]:
    if not ended:
        return []
    outcomes = [each.performed.outcome for each in ended]
    # Of two who send the same at once only one may tell of it, and count it.
    held = settle_now(database, outcomes)
    promote_keys(database, (each.concurrency_key for each in outcomes))
    recorded = [each for each in ended if each.claim.job_id in held]
    for each in recorded:
        if each.performed.is_heard:
            each.performed.announce()
    return recorded


def _withdraw_ended(database: str, recorded: Sequence[Recorded]) -> None:
    # What is asked for behind the worker's last call is left to the sweep.
    withdraw(database, [it.claim.job_id for it in recorded if it.performed.is_over])


def _performed(
    database: str, claim: Claim, report: Report, worker: ExternalWorker
) -> PerformedElsewhere:
    """What the report says, as the terms of its job have it."""
    facts: dict[str, Any] = {
        "worker_id": worker.name,
        "started_at": report.receipt.claimed_at,
    }
    if report.end is End.SUCCEEDED:
        try:
            outcome = _finished(claim, report.result, **facts)
            return PerformedElsewhere(claim, outcome, database=database)
        except (TypeError, ValueError) as refusal:
            # As if the task had returned it here: too large, or no JSON.
            return _failed(database, claim, refusal, facts)
    ended = _failed(database, claim, _error_of(report), facts)
    if report.end is End.FAILED and isinstance(ended.outcome, Failed):
        ended.outcome = _in_its_words(ended.outcome, report)
    return ended


def _failed(
    database: str, claim: Claim, error: BaseException, facts: dict[str, Any]
) -> PerformedElsewhere:
    policy = terms_for(claim).policy
    return elsewhere.failed(claim, error, database=database, policy=policy, **facts)


def _finished(
    claim: Claim, result: Any, worker_id: str, started_at: datetime
) -> Finished:
    policy, options, _ = terms_for(claim)
    return Finished(
        job_id=claim.job_id,
        token=claim.token,
        attempts=claim.attempts,
        worker_id=worker_id,
        started_at=started_at,
        finished_at=max(timezone.now(), started_at),
        concurrency_key=claim.concurrency_key,
        unique_key=claim.unique_key,
        result=stored(result, options),
        keep=is_kept(policy, options) or is_of_history(claim),
    )


def _error_of(report: Report) -> BaseException:
    message = in_one_line(report.message)
    match report.end:
        case End.TIMED_OUT:
            return TaskTimeout(message or "The worker says that its time was up.")
        case End.CANCELLED:
            return TaskCancelled(message or "The worker has heeded a cancellation.")
    if report.is_final:
        return Discard(message)
    if report.retry_after is not None:
        return Retry(message, after=report.retry_after)
    return ReportedError(f"{in_one_line(report.error)}: {message}")


def _in_its_words(failed: Failed, report: Report) -> Failed:
    return replace(
        failed,
        # A name, which logs quote as such.
        exception_class=in_one_line(storable(report.error))[:CLASS_LENGTH],
        message=storable(report.message)[:MESSAGE_LENGTH],
        traceback=shortened(storable(report.traceback)),
    )


# ── Answers ────────────────────────────────────────────────────────────────────


def _state_after(performed: PerformedElsewhere) -> str:
    match performed.outcome:
        case Finished():
            return "finished"
        case Failed(retry_at=None):
            return "failed"
    return "scheduled"
