"""What workers outside say of their jobs, and what they are answered."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from .receipts import Receipt


class End(StrEnum):
    """How an attempt has ended, in the words of whoever made it."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    RELEASED = "released"
    """It was not begun, or may be begun again by anybody: it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How one attempt has ended."""

    job_id: UUID
    receipt: Receipt
    end: End
    result: Any = None
    # Of a failure: its class, as the language of the worker names it, and its words.
    error: str = "Error"
    message: str = ""
    traceback: str = ""
    # It is to be tried again after so long, whatever the policy says of when.
    retry_after: timedelta | None = None
    # It is of no use to try again.
    is_final: bool = False

    @property
    def attempt(self) -> "NamedAttempt":
        """The attempt that it is about: one job may have had several here."""
        return self.job_id, self.receipt


# A job, and by what one claim of it is told from the others.
NamedAttempt = tuple[UUID, Receipt]


@dataclass(frozen=True, slots=True)
class Answer:
    """What has become of a report."""

    job_id: UUID
    # Now, or when it was sent before.
    is_recorded: bool
    # Where the job stands; "gone" if it is not there any more.
    state: str
