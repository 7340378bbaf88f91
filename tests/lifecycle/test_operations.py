"""Operations: one verb for all jobs that match, a batch at a time."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.lifecycle import operations, search_walk, selection
from robust_queue.lifecycle.operations import (
    carry_out,
    expected,
    forget,
    request,
    stop,
)
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.survey import survey
from robust_queue.lifecycle.sweep import Sweeps
from robust_queue.models import Attempt, Operation, ReadyExecution
from tests.support import rows
from tests.support.invariants import states
from tests.support.statements import statements
from tests.support.threads import in_thread, started, uncommitted
from tests.testapp.tasks import elsewhere, note

pytestmark = pytest.mark.django_db

FAILED = JobSearch(state="failed")
ME, OTHER = uuid4(), uuid4()


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(search_walk, "BATCH_SIZE", 2)


@pytest.fixture
def broken(monkeypatch):
    """Retrying raises, for as long as a list says so."""
    reasons = ["a bad day"] * 100

    def retry(database, wanted):
        if reasons:
            raise RuntimeError(reasons.pop())
        return selection.Tally(1, 1)

    verb = operations.VERBS["retry"]._replace(change=retry)
    monkeypatch.setitem(operations.VERBS, "retry", verb)
    return reasons


def carry_on(process_id=ME):
    """Do all there is to do; return in how many batches."""
    number = 0
    while carry_out("default", process_id):
        number += 1
    return number


def the_operation():
    return Operation.objects.get()


def wait_no_longer():
    """As if the lease had run out, or the pause after an error."""
    past = timezone.now() - timedelta(seconds=1)
    Operation.objects.update(leased_until=past)


class TestRequest:
    def test_what_is_written_down(self):
        row = rows.failed()
        rows.ready()
        found = request("default", "discard", FAILED, requested_by="ada")
        assert found == the_operation()
        assert (found.verb, found.requested_by) == ("discard", "ada")
        assert JobSearch.read(found.criteria) == FAILED
        assert (found.expected, found.status) == (1, "waiting")
        assert found.newest > row.pk, "the newest job of all"

    def test_nothing_is_done_yet(self):
        row = rows.failed()
        request("default", "discard", FAILED)
        assert states() == {row.pk: "failed"}

    @pytest.mark.parametrize(
        ("verb", "search"),
        [
            ("retry", JobSearch(state="ready")),
            ("discard", JobSearch(state="claimed")),
            ("cancel", JobSearch(error="shop.Refused")),
            ("run_now", JobSearch(state="blocked")),
            ("retry", JobSearch(state="finished")),
            ("eat", JobSearch()),
        ],
    )
    def test_what_cannot_be_done_is_refused(self, verb, search):
        with pytest.raises(ValueError, match=r"done to|no verb"):
            request("default", verb, search)
        assert not Operation.objects.exists()

    def test_all_states_of_a_verb_are_expected(self):
        for make in (rows.scheduled, rows.blocked, rows.ready, rows.claimed):
            make()
        rows.failed()
        rows.finished()

        def number(verb, most=9):
            return expected("default", verb, JobSearch(), most=most)

        assert (number("discard"), number("cancel"), number("retry")) == (4, 4, 1)
        assert number("discard", most=3) is None


class TestBatches:
    @pytest.mark.usefixtures("small_batches")
    def test_it_goes_on_batch_by_batch_to_the_end(self):
        for _ in range(5):
            rows.failed()
        request("default", "retry", FAILED)
        progress = []
        while carry_out("default", ME):
            progress.append((the_operation().done, the_operation().status))
        assert progress == [(2, "running"), (4, "running"), (5, "finished")]
        assert set(states().values()) == {"ready"}
        assert the_operation().leased_until is None

    @pytest.mark.usefixtures("small_batches")
    def test_each_state_has_its_turn(self):
        for make in (rows.scheduled, rows.blocked, rows.ready, rows.failed):
            for _ in range(3):
                make()
        kept = {rows.claimed().pk: "claimed", rows.finished().pk: "finished"}
        request("default", "discard", JobSearch())
        carry_on()
        assert states() == kept
        assert (the_operation().matched, the_operation().done) == (12, 12)

    @pytest.mark.parametrize(
        ("verb", "make", "becomes"),
        [
            ("retry", rows.failed, "ready"),
            ("cancel", rows.scheduled, "failed"),
            ("cancel", rows.claimed, "claimed"),
            ("run_now", rows.scheduled, "scheduled"),
        ],
    )
    def test_verbs(self, verb, make, becomes):
        wanted, other = make().pk, make(rows.job(queue_name="other"))
        request("default", verb, JobSearch(queue="default"))
        carry_on()
        assert states()[wanted] == becomes
        assert the_operation().done == 1
        assert type(other).objects.filter(pk=other.pk).exists()

    def test_what_comes_later_is_left_alone(self):
        rows.failed()
        request("default", "discard", FAILED)
        later = rows.failed().pk
        carry_on()
        assert states() == {later: "failed"}

    @pytest.mark.usefixtures("small_batches")
    def test_a_job_that_fails_again_is_not_retried_again(self):
        """The cursor went behind it together with its retry."""
        first, *_ = [rows.failed() for _ in range(3)]
        request("default", "retry", FAILED)
        assert carry_out("default", ME)
        ReadyExecution.objects.filter(pk=first.pk).delete()
        rows.failed(first.job)
        carry_on()
        assert states()[first.pk] == "failed"
        assert the_operation().done == 3

    def test_what_was_passed_over_is_counted(self):
        rows.scheduled()
        rows.scheduled(scheduled_at=timezone.now())
        request("default", "run_now", JobSearch())
        carry_on()
        found = the_operation()
        assert (found.matched, found.done) == (2, 1)
        assert found.reasons == {"due already": 1}

    def test_without_any_job_it_is_over_at_once(self):
        request("default", "cancel", JobSearch())
        assert carry_on() == len(operations.VERBS["cancel"].states)
        assert the_operation().status == "finished"

    def test_the_oldest_goes_first(self):
        first, second = (request("default", "retry", FAILED) for _ in range(2))
        carry_out("default", ME)
        first.refresh_from_db()
        second.refresh_from_db()
        assert (first.status, second.status) == ("finished", "waiting")

    def test_what_it_costs_besides_the_verb(self):
        rows.failed()
        request("default", "retry", FAILED)
        with statements() as sent:
            carry_out("default", ME)
        own = [sql for sql in sent.changes if "robust_queue_operations" in sql]
        assert len(own) == 5, "look, lease, hold, read, account"
        with statements() as sent:
            assert not carry_out("default", ME)
        assert len(sent) == 1


class TestStop:
    @pytest.mark.usefixtures("small_batches")
    def test_what_is_done_stays_done(self):
        for _ in range(5):
            rows.failed()
        asked = request("default", "retry", FAILED)
        carry_out("default", ME)
        assert stop("default", asked.pk) is True
        assert not carry_out("default", ME)
        assert sorted(states().values()) == ["failed"] * 3 + ["ready"] * 2
        assert the_operation().status == "stopped"

    def test_once_is_enough_and_what_is_over_is_over(self):
        asked = request("default", "retry", FAILED)
        assert stop("default", asked.pk) is True
        assert stop("default", asked.pk) is False
        assert stop("default", uuid4()) is False


class TestTrouble:
    def test_it_is_noted_and_tried_again(self, broken):
        rows.failed()
        request("default", "retry", FAILED)
        broken[1:] = []
        assert carry_out("default", ME)
        found = the_operation()
        assert (found.failures, found.problem) == (1, "RuntimeError: a bad day")
        assert not carry_out("default", ME), "not yet"
        wait_no_longer()
        assert carry_out("default", OTHER)
        found = the_operation()
        assert (found.status, found.problem, found.failures) == ("finished", "", 0)

    def test_it_is_given_up_in_the_end(self, broken):
        row = rows.failed()
        request("default", "retry", FAILED)
        for _ in range(operations.MOST_FAILURES):
            assert the_operation().status in ("waiting", "running")
            assert carry_out("default", ME)
            wait_no_longer()
        assert the_operation().status == "given up"
        assert not carry_out("default", ME)
        assert states() == {row.pk: "failed"}

    def test_one_that_goes_wrong_does_not_keep_others_waiting(self, broken):
        rows.failed()
        request("default", "retry", FAILED)
        request("default", "discard", FAILED)
        assert carry_on() == 2
        assert states() == {}

    def test_criteria_of_another_version(self):
        rows.operation(criteria='{"colour": "red"}')
        assert carry_out("default", ME)
        assert "by colour" in the_operation().problem


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_only_one_of_two_takes_it(self, monkeypatch):
        """The other finds the same row, and is a moment too late."""
        rows.failed()
        request("default", "retry", FAILED)
        taken = []

        def look_then_lose(database, change):
            # Between the look and the change of this one.
            monkeypatch.undo()
            taken.append(in_thread(operations._take, "default", OTHER))
            return change()

        monkeypatch.setattr(operations, "retried", look_then_lose)
        assert operations._take("default", ME) is None
        assert taken == [the_operation().pk]
        assert the_operation().process_id == OTHER

    @pytest.mark.usefixtures("row_locks")
    def test_the_other_waits_for_the_first_ones_commit(self):
        request("default", "retry", FAILED)
        with uncommitted(operations._take, "default", OTHER) as taken:
            losing = started(operations._take, "default", ME)
        assert taken == the_operation().pk
        assert losing.result(30) is None

    def test_whoever_lost_its_lease_does_nothing(self):
        row = rows.failed()
        asked = request("default", "retry", FAILED)
        assert operations._take("default", ME) == asked.pk
        wait_no_longer()
        assert in_thread(operations._take, "default", OTHER) == asked.pk
        operations._do_batch("default", asked.pk, ME)
        assert states() == {row.pk: "failed"}
        assert the_operation().status == "waiting"

    @pytest.mark.usefixtures("row_locks")
    def test_a_stop_waits_for_the_batch_under_way(self):
        rows.failed()
        asked = request("default", "retry", FAILED)
        operations._take("default", OTHER)
        with uncommitted(operations._do_batch, "default", asked.pk, OTHER):
            stopping = started(stop, "default", asked.pk)
        assert stopping.result(30) is False, "it was the last batch"
        assert the_operation().done == 1

    def test_a_death_in_the_middle_changes_nothing(self, monkeypatch):
        row = rows.failed()
        request("default", "retry", FAILED)
        monkeypatch.setattr(operations, "_advance", _die)
        with pytest.raises(SystemExit):
            carry_out("default", ME)
        monkeypatch.undo()
        assert states() == {row.pk: "failed"}
        assert the_operation().done == 0
        assert not Attempt.objects.exists()
        wait_no_longer()
        assert carry_out("default", OTHER)
        assert (states(), the_operation().done) == ({row.pk: "ready"}, 1)


def _die(*args):
    raise SystemExit


class TestUpkeep:
    def test_the_survey_sees_only_those_that_are_open(self):
        assert "operations" not in survey("default").tables
        asked = request("default", "retry", FAILED)
        assert "operations" in survey("default").tables
        stop("default", asked.pk)
        assert "operations" not in survey("default").tables

    def test_what_is_over_goes_after_a_week(self):
        now = timezone.now()
        rows.operation(finished_at=now - timedelta(days=8))
        kept = {rows.operation(finished_at=now - timedelta(days=6)), rows.operation()}
        for _ in Sweeps("default").sweep():
            pass
        assert set(Operation.objects.all()) == kept
        assert forget("default", now) == 0


def test_batches_of_failures_are_found_by_an_index():
    """Of a state alone, nothing but the batch is read."""
    if connection.vendor != "sqlite":
        pytest.skip("SQLite tells its plans the most plainly")
    found = search_walk.matching(
        "default", FAILED, "failed", {"pk__lte": uuid4()}, None
    )
    assert "SCAN" not in found[:500].explain()


@pytest.mark.django_db(databases=["default", "other"])
def test_another_database_has_operations_of_its_own():
    here = note.enqueue()
    elsewhere.enqueue()
    request("other", "discard", JobSearch(task=elsewhere.module_path))
    assert not carry_out("default", ME)
    while carry_out("other", ME):
        pass
    assert (states(), states("other")) == ({UUID(here.id): "ready"}, {})
