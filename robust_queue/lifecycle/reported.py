"""What has become of reports that come again, or too late."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q

from robust_queue.exceptions import TaskTimeout
from robust_queue.models import Attempt, FailedExecution
from robust_queue.policies import Kind

from .enlist import ExternalWorker
from .outside import Answer, End, NamedAttempt, Report
from .selection import standing
from .settle import attempt_of, past_of

logger = logging.getLogger("robust_queue")

_TIMEOUT = f"{TaskTimeout.__module__}.{TaskTimeout.__qualname__}"

# A job, and by what one attempt of it is told from others: those of a batch were begun
# by the same worker in the same moment.
Made = tuple[UUID, Any]


class _Past(NamedTuple):
    """What is written down of some jobs."""

    states: Mapping[UUID, str]
    attempts: Mapping[UUID, set[Any]]
    # Attempts that somebody else has ended, and what their worker would have said.
    ended_by_others: Mapping[Made, End | None]

    def has(self, told: Report, worker: ExternalWorker) -> bool:
        """Was it recorded before, as far as anybody can tell?"""
        if told.end is End.RELEASED:
            # The claim is not there: it has gone back, whoever has seen to that.
            return True
        if told.job_id not in self.states:
            # One that leaves no trace has no past.
            return told.end is End.SUCCEEDED
        receipt = told.receipt
        attempt = attempt_of(receipt.attempts, worker.name, receipt.claimed_at)
        made = told.job_id, attempt
        if made in self.ended_by_others:
            return self.ended_by_others[made] is told.end
        return attempt in self.attempts.get(told.job_id, ())


def answers_before(
    database: str, worker: ExternalWorker, reports: Sequence[Report]
) -> dict[NamedAttempt, Answer]:
    """Of jobs that this worker does not hold, or no longer."""
    if not reports:
        return {}
    past = _past(database, [each.job_id for each in reports])
    found = {}
    for each in reports:
        is_recorded, state = past.has(each, worker), past.states.get(each.job_id)
        found[each.attempt] = Answer(each.job_id, is_recorded, state or "gone")
        if not is_recorded:
            logger.warning(
                "Job %s is no longer that of worker %s: its report is not recorded.",
                each.job_id,
                worker.name,
            )
    return found


def _past(database: str, job_ids: Sequence[UUID]) -> _Past:
    return _Past(
        states=standing(database, job_ids),
        attempts=past_of(database, job_ids, "started_at"),
        ended_by_others=_ended_by_others(database, job_ids),
    )


def _ended_by_others(database: str, job_ids: Sequence[UUID]) -> dict[Made, End | None]:
    """Attempts whose worker was too late or dead, and what it would have said of it.

    Its own reports leave neither of these behind, but that its time was up.
    """
    columns = ("job_id", "attempts", "worker_id", "started_at", "kind")
    found: dict[Made, End | None] = {}
    for model in (FailedExecution, Attempt):
        rows = model._default_manager.using(database).filter(job_id__in=job_ids)
        others = rows.filter(Q(kind=Kind.CRASHED.value) | Q(exception_class=_TIMEOUT))
        for job_id, *attempt, kind in others.values_list(*columns):
            is_crash = kind == Kind.CRASHED.value
            found[job_id, attempt_of(*attempt)] = None if is_crash else End.TIMED_OUT
    return found
