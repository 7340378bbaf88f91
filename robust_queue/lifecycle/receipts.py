"""Claims of workers outside, and the receipts by which these tell of them."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from robust_queue.models import ClaimedExecution
from robust_queue.stores.rows import Claim

from .moments import as_stored, aware


class Receipt(NamedTuple):
    """By what a claim is told from any other: also from one of the same job.

    It outlives the claim: what has become of an attempt is found by it when the answer
    to a report got lost.
    """

    token: UUID
    attempts: int
    claimed_at: datetime

    def __str__(self) -> str:
        microseconds = (aware(self.claimed_at) - _EPOCH) // _MICROSECOND
        return f"{self.token.hex}.{self.attempts}.{microseconds}"

    @classmethod
    def read(cls, text: str) -> "Receipt":
        """What a worker sends back; a ValueError if it is none of ours."""
        found = _RECEIPT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text[:80]!r} is not the token of a claim.")
        token, attempts, microseconds = found.groups()
        moment = _EPOCH + int(microseconds) * _MICROSECOND
        return cls(UUID(token), int(attempts), as_stored(moment))


def claims_in(rows: QuerySet[ClaimedExecution]) -> Iterator[tuple[Claim, datetime]]:
    """Claims as their rows and jobs tell of them, and since when; the first first."""
    columns = rows.order_by("priority", "pk").values_list(*_COLUMNS.values())
    # Not by models: of fifty rows and their jobs they would take as long as the query.
    for since, *values in columns:
        yield Claim(**dict(zip(_COLUMNS_OF_CLAIM, values, strict=True))), since


_OF_JOB = (
    *("task_path", "backend", "queue_name", "priority", "arguments", "enqueued_at"),
    *("run_after", "metadata", "concurrency_key", "unique_key", "partition_key"),
)
_COLUMNS = {
    "since": "created_at",
    "job_id": "pk",
    **{name: name for name in ("token", "process_id", "attempts")},
    "rank": "priority",
    **{name: f"job__{name}" for name in _OF_JOB},
}
_COLUMNS_OF_CLAIM = [name for name in _COLUMNS if name != "since"]


# Of moments beyond the calendar nothing is said.
_RECEIPT = re.compile(r"([0-9a-f]{32})\.([0-9]{1,5})\.([0-9]{1,17})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
