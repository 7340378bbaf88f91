"""What Django's tests expect of their backends, on top of Robust Queue's.

The classes bear the names of those whose places they take in Django's tests.
"""

from robust_queue.backend import RobustQueueBackend
from robust_queue.models import Job
from robust_queue.testing import drain


class DummyBackend(RobustQueueBackend):
    """Keeps jobs waiting, and lets the tests look at all of them at once."""

    @property
    def results(self):
        """The results of all jobs, oldest first."""
        identifiers = self._jobs().order_by("id").values_list("id", flat=True)
        return [self.get_result(str(identifier)) for identifier in identifiers]

    def clear(self):
        """Forget all jobs."""
        self._jobs().delete()

    def _jobs(self):
        return Job.objects.using(self.database)


class ImmediateBackend(RobustQueueBackend):
    """Runs a job as soon as it is stored."""

    def enqueue(self, task, args, kwargs):
        result = super().enqueue(task, args, kwargs)
        drain(database=self.database)
        return self.get_result(result.id)
