"""What Robust Queue raises. Errors of Django's own contract stay Django's."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.core.exceptions import ImproperlyConfigured

from robust_queue.backoffs import duration


class RobustQueueError(Exception):
    """Base of every error that is Robust Queue's own."""


class ConfigurationError(RobustQueueError, ImproperlyConfigured):
    """A setting is unknown or has a value that makes no sense."""

    def __init__(self, path: str, problem: str, cure: str = "") -> None:
        self.path = path
        self.problem = problem
        self.cure = cure
        super().__init__(f"{path}: {problem} {cure}".rstrip())


class NoQueueError(RobustQueueError, ImproperlyConfigured):
    """There is no queue to serve, or not in the database that was named."""


class EnqueueError(RobustQueueError):
    """The database refused a job; the cause is chained."""


class DuplicateTaskError(RobustQueueError):
    """Another job has the unique key of a call that was to be enqueued.

    ``result_id`` is the id of that job; None if it was to be enqueued in the same call.
    ``refused_id`` is the one that the job of the refused call would have had.
    """

    def __init__(
        self, message: str, *, result_id: str | None = None, refused_id: str = ""
    ) -> None:
        super().__init__(message)
        self.result_id = result_id
        self.refused_id = refused_id


class RequestReusedError(RobustQueueError):
    """The names of some requests were given to others before.

    ``places`` tells which of those that came together.
    """

    def __init__(self, message: str, *, places: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.places = tuple(places)


class SerializationError(RobustQueueError, TypeError):
    """A value cannot be stored as an argument or as a result."""


class PayloadTooLargeError(SerializationError):
    """Arguments or a result are larger than the configured limit."""


class DeserializationError(RobustQueueError):
    """A stored value cannot be read back, e.g. because its model is gone."""


class RedactionError(RobustQueueError):
    """Nobody can tell what of some arguments may be shown."""


class UnknownTaskError(RobustQueueError):
    """A job names a task that this process has not declared."""


class ExternalTaskError(RobustQueueError):
    """An external task was called here, where nobody can perform it."""


class IsolationError(RobustQueueError):
    """A task asks for a process of its own where there is none to be had."""


class UndiscardableError(RobustQueueError):
    """A claimed job is running, or about to; it cannot be discarded."""


class UnreplaceableError(RobustQueueError):
    """A job is neither waiting nor failed, or no longer; no other can replace it."""


class TuningError(RobustQueueError, ValueError):
    """There is no such worker, or it cannot be changed so while it runs."""


# ── How attempts end ───────────────────────────────────────────────────────────


class TaskTimeout(RobustQueueError, TimeoutError):  # noqa: N818 (as in Django's words)
    """The attempt took longer than its ``timeout``."""


class TaskCancelled(RobustQueueError):  # noqa: N818
    """Somebody has cancelled the job."""


class TaskDiscarded(RobustQueueError):  # noqa: N818
    """The job was in conflict with another one, and is to be discarded then."""


class RecurringTaskError(RobustQueueError):
    """What was asked of a recurring task cannot be done, and why.

    ``discreet`` says the same to those who may not see arguments.
    """

    def __init__(self, message: str, *, discreet: str = "") -> None:
        super().__init__(message)
        self.discreet = discreet or message


class RecurringKeyTakenError(RecurringTaskError):
    """Something recurs under that key already, and was not to be replaced."""


class ReportedError(RobustQueueError):
    """An external worker has reported that an attempt failed, in its own words."""


class TaskExpired(RobustQueueError):  # noqa: N818
    """The job came to run after its ``deadline``, when it was of no use any more."""


# ── What a task raises to say how it goes on ───────────────────────────────────


class Steering(Exception):  # noqa: N818 (these are no errors)
    """Base of what a task may raise to say what becomes of its job."""


class Retry(Steering):
    """This attempt has failed: try again, after so long if told, else as declared.

    Within ``max_attempts``, or within three attempts where none is declared.
    """

    def __init__(
        self, reason: str = "", *, after: timedelta | float | None = None
    ) -> None:
        super().__init__(reason)
        self.after = None if after is None else duration("after", after)


class Snooze(Steering):
    """It is too early: try again at that moment, or so much later.

    That is no failure, and no attempt is used up.
    """

    def __init__(self, reason: str = "", *, until: datetime | timedelta) -> None:
        super().__init__(reason)
        if not isinstance(until, datetime | timedelta):
            raise TypeError(f"until must be a datetime or a timedelta, not {until!r}.")
        self.until = until


class Discard(Steering):
    """It is of no use any more: the job ends here, and nobody needs to look at it."""
