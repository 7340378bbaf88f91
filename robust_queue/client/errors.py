"""What goes wrong: with a call, or with a job."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

# Seconds after which the queue tries again at the latest.
A_YEAR = 31_536_000.0


class ApiError(Exception):
    """The queue has refused a request. Programs read the code, people the detail."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[Any] = (),
        retry_after: float | None = None,
    ) -> None:
        misfits = "; ".join(map(_told, errors))
        super().__init__(f"{status} {code}: {detail} {misfits}".rstrip())
        self.status = status
        self.code = code
        self.detail = detail
        # Every misfit of the request: where, and what the problem is.
        self.errors = tuple(errors)
        # Seconds, if the queue has said so.
        self.retry_after = retry_after


def _told(misfit: Any) -> str:
    if isinstance(misfit, Mapping):
        return f"{misfit.get('where')}: {misfit.get('problem')}"
    return str(misfit)


class UnreachableError(ApiError):
    """No answer came. Whether the request was heard is not known."""

    def __init__(self, detail: str) -> None:
        super().__init__(0, "unreachable", detail)


class Retry(Exception):  # noqa: N818 (the word of the tasks in Python)
    """Raised by a handler: try again, within the attempts of the task."""

    def __init__(self, message: str = "", *, after: timedelta | float) -> None:
        super().__init__(message)
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        self.after = float(seconds)
        # Said where it is raised, with its traceback, and not by the queue.
        if not 0 <= self.after <= A_YEAR:
            raise ValueError(f"after has to be from 0 seconds to a year, not {after}.")


class Discard(Exception):  # noqa: N818
    """Raised by a handler: it has failed, and it is of no use to try again."""


class Cancelled(Exception):  # noqa: N818
    """Raised by a handler that has heeded a cancellation."""


class TimedOut(Exception):  # noqa: N818
    """Raised by a handler whose time is up. The job is not tried again."""
