"""What a worker counts, what it writes of it, and what that must never cost."""

import logging
import math
from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.db import OperationalError
from django.utils import timezone

from robust_queue import enqueue_all
from robust_queue.lifecycle.durations import Durations, step_of
from robust_queue.lifecycle.statistics import history
from robust_queue.models import FinishedExecution, Rollup
from robust_queue.models.rollups import EVERY_QUEUE
from robust_queue.processes import ledger as ledgers
from robust_queue.processes.held import Ended, Held
from robust_queue.processes.ledger import SAMPLE, Ledger
from robust_queue.stores.rows import Claim, Failed, Finished, Snoozed
from tests.support.in_process import in_process
from tests.support.statements import statements
from tests.testapp.tasks import add

NOON = 1_794_830_400
SECOND = timedelta(seconds=1)
FAILURE = {"exception_class": "ValueError", "message": "", "traceback": ""}
KINDS = {
    "finished": (Finished, {"result": "null"}),
    "failed": (Failed, FAILURE),
    "snoozed": (Snoozed, {"until": timezone.now()}),
}


def end(kind="finished", *, queue="mail", waited=0.5, ran=2.0, attempts=1, after=0):
    """The end of a job that waited and ran for so many seconds."""
    job_id, token, started_at = uuid4(), uuid4(), timezone.now()
    due = started_at - waited * SECOND
    claim = Claim(
        job_id=job_id,
        token=token,
        process_id=uuid4(),
        attempts=attempts,
        task_path="t",
        backend="default",
        queue_name=queue,
        priority=0,
        arguments="",
        enqueued_at=due - after * SECOND,
        run_after=due if after else None,
    )
    outcome, facts = KINDS[kind]
    told = outcome(
        job_id=job_id,
        token=token,
        attempts=attempts,
        worker_id="w",
        started_at=started_at,
        finished_at=started_at + ran * SECOND,
        **facts,
    )
    return Ended(Held(claim, 0, None, 0.0), SimpleNamespace(outcome=told))


class Counting:
    """A ledger whose clock stands still."""

    def __init__(self, monkeypatch):
        self.now = NOON + 30
        monkeypatch.setattr(ledgers, "time", SimpleNamespace(time=lambda: self.now))
        self.ledger = Ledger("default", uuid4())

    def add(self, *ends):
        self.ledger.add(ends, {each.held.claim.job_id for each in ends})

    def write(self):
        self.ledger.hurry()
        self.ledger.write_if_due()

    def told(self, queue=EVERY_QUEUE, span=60):
        self.write()
        return Rollup.objects.filter(queue_name=queue, span=span).latest("at")


@pytest.fixture
def counting(monkeypatch):
    return Counting(monkeypatch)


def about(seconds):
    return pytest.approx(seconds, rel=0.2)


def seconds(text, share=0.5):
    return Durations.of(text).percentile(share).total_seconds()


@pytest.mark.django_db(transaction=True)
class TestCounting:
    def test_by_queue_and_together(self, counting):
        counting.add(end(), end(), end("failed"), end(queue="photos"))
        assert (counting.told("mail").finished, counting.told("mail").failed) == (2, 1)
        assert (counting.told().finished, counting.told().failed) == (3, 1)
        assert seconds(counting.told("mail").runs) == about(2)
        assert seconds(counting.told("mail").waits) == about(0.5)

    def test_of_what_was_recorded_only(self, counting):
        kept, lost = end(), end()
        counting.ledger.add([kept, lost], {kept.held.claim.job_id})
        assert counting.told().finished == 1

    def test_a_wait_is_counted_once_and_from_when_the_job_was_due(self, counting):
        counting.add(end(attempts=2, waited=900), end(waited=3, after=9000))
        assert Durations.of(counting.told().waits).total() == 1
        assert seconds(counting.told().waits) == about(3)

    def test_an_attempt_that_does_not_count_is_not_counted(self, counting):
        counting.add(end("snoozed"), end())
        row = counting.told()
        assert (row.finished, row.failed) == (1, 0)
        assert Durations.of(row.runs).total() == 1

    def test_of_few_at_once_each_is_asked_how_long_it_took(self, counting):
        times = [4**n / 1000 for n in range(SAMPLE)]
        counting.add(*(end(ran=ran) for ran in times))
        steps = Durations(step_of(ran * SECOND) for ran in times)
        assert Durations.of(counting.told().runs) == steps

    def test_of_many_at_once_some_stand_for_the_others(self, counting):
        """Not always the same ones, and so that the shares stay about right."""
        quick_ones_first = [end(ran=0.01)] * 80 + [end(ran=10)] * 20
        for _ in range(30):
            counting.add(*quick_ones_first)
        row = counting.told()
        runs = Durations.of(row.runs)
        assert row.finished == 3000
        assert runs.total() == pytest.approx(3000, rel=0.1)
        assert runs[step_of(10 * SECOND)] == pytest.approx(600, rel=0.2)

    def test_minutes_are_kept_apart(self, counting):
        counting.add(end())
        counting.now += 60
        counting.add(end(), end())
        counting.write()
        minutes = Rollup.objects.filter(queue_name="", span=60).order_by("at")
        assert [row.finished for row in minutes] == [1, 2]
        assert counting.told(span=3600).finished == 3

    def test_any_number_of_queues_takes_little_memory(self, counting, monkeypatch):
        monkeypatch.setattr(ledgers, "MOST_NEW", 10)
        for number in range(1000):
            counting.add(end(queue=f"q{number}"))
            assert len(counting.ledger._ends) <= 11
        assert counting.told().finished == 1000
        assert Rollup.objects.filter(span=60).count() == 501


@pytest.mark.django_db(transaction=True)
class TestWriting:
    def test_is_one_statement_and_none_without_anything_new(self, counting):
        counting.add(end(), end(queue="photos"))
        with statements() as sent:
            counting.write()
            counting.write()
            counting.ledger.write_if_due(is_last=True)
        assert len(sent.changes) == 1

    def test_comes_a_little_after_the_turn_of_the_minute(self, counting, monkeypatch):
        monkeypatch.setattr(ledgers.clock, "now", lambda: 1000.0)
        assert counting.ledger._due == math.inf
        counting.add(end())
        assert 1000 + 30 + 5 <= counting.ledger._due <= 1000 + 30 + 10
        counting.ledger.write_if_due()
        assert not Rollup.objects.exists(), "not yet"
        counting.ledger.write_if_due(is_last=True)
        assert Rollup.objects.count() == 6
        assert counting.ledger._due == math.inf

    def test_trouble_is_told_and_nothing_is_lost(self, counting, monkeypatch, caplog):
        def refuse(*args):
            raise OperationalError("the table is locked")

        counting.add(end())
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(ledgers, "write_tallies", refuse)
            counting.write()
            counting.write()
            counting.write()
        assert len(caplog.records) == 1
        assert 0 < counting.ledger._due < math.inf
        counting.add(end())
        assert counting.told().finished == 2


@pytest.mark.django_db(transaction=True)
class TestWorker:
    def test_writes_what_it_has_done(self, monkeypatch):
        monkeypatch.setattr(ledgers, "LATENESS", (-60.0, -60.0))
        enqueue_all(add.bind(i, 0) for i in range(20))
        with in_process(threads=2, coroutines=0) as each:
            each.until(lambda: FinishedExecution.objects.count() == 20)
            each.drain()
            done = Rollup.objects.filter(queue_name="default", span=3600)
            each.until(lambda: sum(row.finished for row in done.all()) == 20)
            assert {row.process_id for row in done} == {each.worker._around.identity}

    def test_writes_before_it_ends(self, monkeypatch):
        monkeypatch.setattr(ledgers, "LATENESS", (600.0, 600.0))
        add.enqueue(1, 2)
        with in_process(threads=1, coroutines=0) as each:
            each.until(FinishedExecution.objects.exists)
            each.drain()
            assert not Rollup.objects.exists()
            each.worker.stop()
            with statements() as sent:
                each.worker.turn()
                each.worker.turn()
            assert len([sql for sql in sent if "robust_queue_rollups" in sql]) == 1
            assert Rollup.objects.get(queue_name="", span=60).finished == 1

    def test_writes_before_it_leaves_something_behind(self):
        add.enqueue(1, 2)
        with in_process(threads=1, coroutines=0) as each:
            each.until(FinishedExecution.objects.exists)
            each.drain()
            each.worker.give_up()
            each.worker.turn()
            assert Rollup.objects.get(queue_name="", span=60).finished == 1

    def test_sends_nothing_while_it_is_idle(self, monkeypatch):
        monkeypatch.setattr(ledgers, "LATENESS", (-60.0, -60.0))
        with in_process(threads=1, coroutines=0) as each, statements() as sent:
            for _ in range(5):
                each.worker.turn()
        assert sent
        assert not [sql for sql in sent if "rollups" in sql]


def test_what_a_real_worker_has_done_can_be_read(supervised):
    enqueue_all(add.bind(i, 0) for i in range(20))
    assert supervised("--until-empty").wait() == 0
    total = history("default").total
    assert (total.finished, total.failed) == (20, 0)
    assert total.run_p50 <= total.run_p95
    assert total.wait_p95 is not None
