"""Telling of jobs one by one, after the fact."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

from robust_queue.compat import TaskResultDoesNotExist

logger = logging.getLogger("robust_queue")


@contextmanager
def news_of(job_id: UUID) -> Iterator[None]:
    """What cannot be told of one job must not keep the news of others back."""
    try:
        # A job that is not kept, or was discarded since, has nothing to tell of.
        with suppress(TaskResultDoesNotExist):
            yield
    except Exception:
        logger.exception("Nobody could be told what became of job %s.", job_id)
