"""Whose turn it is, as a worker remembers it and as real workers take turns."""

from types import SimpleNamespace
from uuid import uuid4

import pytest

from robust_queue.configuration import WorkerConfiguration
from robust_queue.models import Job
from robust_queue.processes.turns import Turns, shared_queues
from tests.support.supervisors import marks
from tests.testapp.process_tasks import mark

BACKEND = "robust_queue.backend.RobustQueueBackend"
IMPORTS = {"imports": {"partition_by": "label"}}


def served(*pairs):
    return [
        SimpleNamespace(job_id=uuid4(), queue_name=queue, partition_key=partition)
        for queue, partition in pairs
    ]


class TestMemory:
    def test_it_begins_anywhere(self):
        assert Turns(["imports"]).standing == ({"imports": ""}, 0)

    def test_the_last_one_of_each_queue_counts(self):
        turns = Turns(["imports", "exports"])
        turns.learn(served(("imports", "a"), ("mail", ""), ("imports", "b")))
        assert turns.standing == ({"imports": "b", "exports": ""}, 1)

    def test_whose_job_goes_back_has_not_been_served(self):
        turns = Turns(["imports"])
        claims = served(("imports", "a"), ("imports", "b"), ("imports", "c"))
        turns.learn(claims, given_back=claims[1:])
        assert turns.standing.partitioned == {"imports": "a"}

    def test_nothing_came_and_the_turn_is_over_all_the_same(self):
        turns = Turns(["imports"])
        turns.learn(served(("imports", "a")))
        turns.learn([])
        assert turns.standing == ({"imports": "a"}, 2)

    def test_where_nothing_is_shared_nothing_is_remembered(self):
        turns = Turns([])
        turns.learn(served(("imports", "a")))
        assert not turns.are_taken
        assert turns.standing == ({}, 0)


class TestSharedQueues:
    def of(self, *queues):
        return shared_queues("default", WorkerConfiguration(queues=queues))

    def test_those_that_a_worker_serves(self, settings):
        settings.ROBUST_QUEUE = {
            "queues": {**IMPORTS, "exports": {"partition_by": "to"}, "mail": {}}
        }
        assert self.of("*") == ["exports", "imports"]
        assert self.of("imp*", "mail") == ["imports"]
        assert self.of("other") == []

    def test_of_every_alias_of_the_database(self, settings):
        settings.TASKS = {
            "default": {"BACKEND": BACKEND},
            "second": {"BACKEND": BACKEND, "OPTIONS": {"QUEUES": IMPORTS}},
        }
        assert self.of("*") == ["imports"]


@pytest.mark.parametrize("pattern", ["imports", "*"])
def test_a_worker_serves_one_after_the_other(supervised, settings, pattern):
    settings.ROBUST_QUEUE = {"queues": IMPORTS}
    for tenant in ["big"] * 8 + ["a", "b"] * 2:
        mark.using(queue_name="imports").enqueue(tenant)
    assert set(Job.objects.values_list("partition_key", flat=True)) == {"big", "a", "b"}
    worker = {"queues": pattern, "threads": 1, "polling_interval": 0.05}
    supervisor = supervised(workers=[worker], queues=IMPORTS).until_up()
    supervisor.until(lambda: len(marks()) == 12, "all have run")
    assert sorted(marks()[:3]) == sorted(marks()[3:6]) == ["a", "b", "big"]
    assert marks()[6:] == ["big"] * 6
