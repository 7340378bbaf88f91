"""An outcome ──▶ finished or failed, exactly once."""

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import DataError

from robust_queue.stores import store_for
from robust_queue.stores.rows import Outcome

from .failure import failed_to_record

logger = logging.getLogger("robust_queue")


def settle(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    """Record outcomes of claims that are still held; return whose they were.

    A claim that was lost meanwhile (its process was taken for dead, or someone settled
    it already) belongs to somebody else. Its outcome is dropped, and the log says so.
    """
    held = _record(database, outcomes)
    for outcome in outcomes:
        if outcome.job_id not in held:
            logger.warning(
                "Job %s is no longer this worker's: its outcome is not recorded.",
                outcome.job_id,
            )
    return held


def _record(database: str, outcomes: Sequence[Outcome]) -> set[UUID]:
    store = store_for(database)
    try:
        return store.settle(outcomes)
    except DataError as error:
        # Something in one of them is more than the database can hold. The others must
        # not suffer for it, and the culprit must not stay claimed for ever.
        if len(outcomes) == 1:
            return store.settle([failed_to_record(outcomes[0], error)])
    return set().union(*(_record(database, [each]) for each in outcomes))
