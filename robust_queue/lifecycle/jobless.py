"""Claims whose job is gone ──▶ gone as well."""

import logging
from collections.abc import Iterable
from typing import Protocol, TypeVar

from robust_queue.models import ClaimedExecution
from robust_queue.stores.conflicts import retried
from robust_queue.stores.rows import Holding

logger = logging.getLogger("robust_queue")


class Held(Holding, Protocol):
    """A claim that also tells which task it is of; of none if its job is gone."""

    @property
    def task_path(self) -> str: ...


AnyHeld = TypeVar("AnyHeld", bound=Held)


def without_jobless(database: str, claims: Iterable[AnyHeld]) -> list[AnyHeld]:
    """Delete the claims whose job is gone, and return the others.

    Somebody has deleted the job by hand. There is nothing left to run, to give back or
    to fail, and a claim that nobody ends would stay for ever.
    """
    whole = []
    for claim in claims:
        if claim.task_path:
            whole.append(claim)
        elif _delete(database, claim):
            logger.warning("Job %s is gone: its claim is deleted.", claim.job_id)
    return whole


def _delete(database: str, claim: Held) -> bool:
    rows = ClaimedExecution.objects.using(database)
    held = rows.filter(pk=claim.job_id, token=claim.token)
    deleted, _ = retried(database, held.delete)
    return bool(deleted)
