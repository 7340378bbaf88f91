"""What Robust Queue raises. Errors of Django's own contract stay Django's."""

from django.core.exceptions import ImproperlyConfigured


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


class SerializationError(RobustQueueError, TypeError):
    """A value cannot be stored as an argument or as a result."""


class PayloadTooLargeError(SerializationError):
    """Arguments or a result are larger than the configured limit."""


class DeserializationError(RobustQueueError):
    """A stored value cannot be read back, e.g. because its model is gone."""


class UnknownTaskError(RobustQueueError):
    """A job names a task that this process has not declared."""


class UndiscardableError(RobustQueueError):
    """A claimed job is running, or about to; it cannot be discarded."""
