"""The page: what a child wrote can be read after its end, whenever that came."""

import os
import random
import signal
import time
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from robust_queue.processes import clock
from robust_queue.processes.page import Page, Stage
from robust_queue.stores.rows import Claim, Failed, Finished

NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def a_claim():
    return Claim(
        job_id=uuid4(),
        token=uuid4(),
        process_id=uuid4(),
        attempts=1,
        task_path="tasks.it",
        backend="default",
        queue_name="default",
        priority=0,
        arguments="{}",
        enqueued_at=NOW,
        run_after=None,
    )


def finished(claim, result="null"):
    return Finished(
        job_id=claim.job_id,
        token=claim.token,
        attempts=1,
        worker_id="worker",
        started_at=NOW,
        finished_at=NOW + timedelta(seconds=1),
        result=result,
    )


def failed(claim):
    return Failed(
        job_id=claim.job_id,
        token=claim.token,
        attempts=1,
        worker_id="worker",
        started_at=NOW,
        finished_at=NOW,
        exception_class="ValueError",
        message="böse \x00",
        traceback="…",
        retry_at=NOW,
    )


def in_child(work):
    """Do something in a process of its own, to its end."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def test_a_new_page_holds_nothing():
    page = Page(3)
    assert list(page.records()) == []
    assert not page.is_up
    assert not page.has_running()


def test_signs_of_life_reach_the_parent():
    page = Page(0)

    def live():
        page.show_beat(12.5)
        page.show_up()

    in_child(live)
    assert page.is_up
    assert page.last_beat == 12.5
    assert clock.now() - page.last_sign_of_life < 60


def test_a_child_can_be_relieved_of_its_time_limit():
    page = Page(0)
    assert not page.is_relieved
    page.show_relieved()
    in_child(lambda: page.show_up() if page.is_relieved else None)
    assert page.is_up
    page.show_relieved(is_relieved=False)
    assert not page.is_relieved


@pytest.mark.parametrize("outcome", [finished, failed])
def test_the_parent_reads_how_far_each_claim_got(outcome):
    page = Page(3)
    reserved, started, done = a_claim(), a_claim(), a_claim()

    def work():
        for slot, claim in enumerate((reserved, started, done)):
            page.reserve(slot, claim)
        page.start(1, runs_again=True)
        page.start(2, runs_again=False)
        page.finish(2, outcome(done))

    in_child(work)
    first, second, third = page.records()
    assert (first.stage, first.job_id) == (Stage.RESERVED, reserved.job_id)
    assert (second.stage, second.token) == (Stage.STARTED, started.token)
    assert abs(second.started_at.timestamp() - time.time()) < 60
    assert (third.stage, third.outcome) == (Stage.DONE, outcome(done))
    assert page.runs_what_runs_again()
    assert page.has_running()


def test_what_will_not_run_again_is_told_apart():
    page = Page(1)
    page.reserve(0, a_claim())
    page.start(0, runs_again=False)
    assert page.has_running()
    assert not page.runs_what_runs_again()


def test_an_outcome_too_large_for_the_page_stays_a_started_task():
    page, claim = Page(1), a_claim()
    page.reserve(0, claim)
    page.start(0, runs_again=False)
    page.finish(0, finished(claim, result="x" * 70_000))
    (record,) = page.records()
    assert record.stage is Stage.STARTED
    assert record.outcome is None


def test_a_slot_is_used_again_and_again():
    page = Page(1)
    for _ in range(3):
        claim = a_claim()
        page.reserve(0, claim)
        page.start(0, runs_again=True)
        page.finish(0, finished(claim, result="1"))
        (record,) = page.records()
        assert record.outcome == finished(claim, result="1")
        page.clear(0)
        assert list(page.records()) == []
        assert not page.runs_what_runs_again()


def test_a_kill_in_the_middle_of_a_write_leaves_no_torn_record():
    """Whatever is read belongs together: job, token and outcome of one claim."""
    chance = random.Random(7)
    for _ in range(60):
        page = Page(2)
        pid = os.fork()
        if not pid:
            _write_for_ever(page)
        time.sleep(chance.uniform(0.001, 0.01))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for record in page.records():
            assert record.job_id == record.token, "both are written from one claim"
            if record.stage is Stage.DONE:
                assert record.outcome.job_id == record.job_id
                assert record.outcome.result == str(record.job_id) * 100


def _write_for_ever(page):
    try:
        while True:
            for slot in page.slots:
                one = uuid4()
                claim = Claim(**{**_fields(a_claim()), "job_id": one, "token": one})
                page.reserve(slot, claim)
                page.start(slot, runs_again=True)
                page.finish(slot, finished(claim, result=str(one) * 100))
                page.clear(slot)
    finally:
        os._exit(0)


def _fields(claim):
    return {name: getattr(claim, name) for name in claim.__slots__}
