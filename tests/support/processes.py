"""Processes that only exist as rows."""

from uuid import uuid4

import pytest

from robust_queue.models import Process


def a_process(using="default"):
    """The id of a process that is registered, and so may claim."""
    return Process.objects.using(using).register("Worker", identity=uuid4()).pk


class Claimant:
    """One process for a whole test, so that statements can be counted."""

    id = None


@pytest.fixture
def claimant(transactional_db):
    Claimant.id = a_process()
    return Claimant
