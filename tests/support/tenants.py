"""Tenants that share a queue, and a worker that remembers whose turn it was."""

from uuid import uuid4

from django.utils import timezone

from robust_queue.identifiers import new_job_id
from robust_queue.processes.turns import Turns
from robust_queue.stores import store_for
from robust_queue.stores.rows import NewJob, Selection
from tests.support.processes import a_process

QUEUE = "imports"


def a_job(partition, queue=QUEUE, rank=0):
    return NewJob(
        id=new_job_id(),
        task_path="tests.testapp.tasks.note",
        backend="default",
        queue_name=queue,
        priority=rank,
        rank=rank,
        arguments='{"args":[],"kwargs":{}}',
        enqueued_at=timezone.now(),
        partition_key=partition,
    )


def put(*partitions, queue=QUEUE, rank=0):
    """A ready job of each of these, in this order."""
    jobs = [a_job(each, queue, rank) for each in partitions]
    store_for("default").insert(jobs)
    return [each.id for each in jobs]


class Server:
    """Claims as a worker does, one batch after the other, each where the last ended."""

    def __init__(self, *patterns, shared=(QUEUE,), process_id=None):
        self._patterns = patterns or (QUEUE,)
        self._turns = Turns(shared)
        self._process_id = process_id or a_process()

    def take(self, limit=1):
        selection = Selection(self._patterns, **self._turns.standing._asdict())
        claims = store_for("default").claim(
            selection,
            limit=limit,
            process_id=self._process_id,
            token=uuid4(),
            now=timezone.now(),
        )
        self._turns.learn(claims)
        return claims

    def serve(self, limit=1):
        """The partitions of a batch, in the order in which they are served."""
        return [each.partition_key for each in self.take(limit)]
