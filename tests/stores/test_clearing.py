"""What every store promises about jobs that have ended: the walk, and what goes."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.retry import retry
from robust_queue.models import Attempt, Job
from robust_queue.stores import store_for
from robust_queue.stores.rows import Milestone
from robust_queue.testing import drain
from tests.support.ended import DAY, MODELS, ended
from tests.support.invariants import states
from tests.support.statements import statements
from tests.support.threads import in_threads, started, uncommitted
from tests.testapp.tasks import explode, note

pytestmark = pytest.mark.django_db

STATES = sorted(MODELS)


def now():
    return timezone.now()


@pytest.fixture
def store():
    return store_for("default")


@pytest.mark.parametrize("state", STATES)
class TestWalk:
    def test_from_the_oldest_on(self, store, state):
        young = ended(state, ago=2 * DAY, count=2)
        old = ended(state, ago=3 * DAY, count=2)
        found = store.ended(state, before=now(), limit=10)
        assert [each.job_id for each in found] == [*old, *young]

    def test_what_ended_later_is_left_out(self, store, state):
        (old,) = ended(state, ago=2 * DAY)
        ended(state, ago=timedelta(0))
        found = store.ended(state, before=now() - DAY, limit=10)
        assert [each.job_id for each in found] == [old]

    def test_it_tells_what_decides_how_long_a_job_is_kept(self, store, state):
        kind = "expired" if state == "failed" else ""
        of_job = {"task_path": "a.b", "backend": "other", "queue_name": "q"}
        (job_id,) = ended(state, ago=DAY, kind=kind, **of_job)
        (found,) = store.ended(state, before=now(), limit=10)
        assert found[1:] == (job_id, kind, "a.b", "other", "q")
        assert found.finished_at == MODELS[state].objects.get().finished_at

    def test_a_row_without_its_job_is_told_as_well(self, store, state):
        ended(state, ago=DAY)
        Job.objects.all()._raw_delete("default")
        (found,) = store.ended(state, before=now(), limit=10)
        assert found[2:] == ("", "", "", "")

    def test_it_goes_on_behind_a_milestone(self, store, state):
        ids = ended(state, ago=DAY, count=7)
        MODELS[state].objects.update(finished_at=now() - DAY)  # all at the same moment
        seen, milestone = [], None
        while found := store.ended(state, before=now(), after=milestone, limit=3):
            seen += [each.job_id for each in found]
            milestone = found[-1].milestone
        assert sorted(seen) == sorted(ids)

    def test_it_begins_at_a_moment(self, store, state):
        ended(state, ago=3 * DAY)
        (young,) = ended(state, ago=DAY)
        moment = MODELS[state].objects.get(pk=young).finished_at
        after = Milestone(moment)
        (found,) = store.ended(state, before=now(), after=after, limit=10)
        assert found.job_id == young


@pytest.mark.parametrize("state", STATES)
class TestClear:
    def test_a_job_goes_with_its_past(self, store, state):
        ids = ended(state, ago=DAY, count=2, attempts=3)
        (other,) = ended(state, ago=DAY, attempts=2)
        assert store.clear(state, ids, before=now()) == set(ids)
        assert states() == {other: state}
        assert {each.job_id for each in Attempt.objects.all()} == {other}

    def test_what_has_ended_since_stays(self, store, state):
        ids = ended(state, ago=DAY, count=2)
        assert store.clear(state, ids, before=now() - 2 * DAY) == set()
        assert set(states()) == set(ids)

    def test_jobs_that_stand_elsewhere_stay(self, store, state):
        waiting = UUID(note.enqueue().id)
        other = {"finished": "failed", "failed": "finished"}[state]
        (job_id,) = ended(other, ago=DAY)
        asked = [waiting, job_id, uuid4()]
        assert store.clear(state, asked, before=now()) == set()
        assert states() == {waiting: "ready", job_id: other}

    def test_nothing_is_nothing(self, store, state):
        with statements() as found:
            assert store.clear(state, [], before=now()) == set()
        assert found == []


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.mark.usefixtures("row_locks")
    def test_a_retry_that_was_first_wins(self, store):
        (job_id,) = ended("failed", ago=DAY)
        with uncommitted(retry, "default", job_id):
            assert store.clear("failed", [job_id], before=now()) == set()
        assert states() == {job_id: "ready"}
        assert Attempt.objects.count() == 1

    @pytest.mark.usefixtures("row_locks")
    def test_a_retry_waits_for_a_clearing_and_then_loses(self, store):
        (job_id,) = ended("failed", ago=DAY, attempts=2)
        with uncommitted(store_for("default").clear, "failed", [job_id], before=now()):
            racing = started(retry, "default", job_id)
        assert racing.result(30) is False
        assert states() == {}
        assert not Attempt.objects.exists()

    @pytest.mark.usefixtures("row_locks")
    def test_a_retry_wins_against_a_clearing_that_rolls_back(self, store):
        (job_id,) = ended("failed", ago=DAY)

        def clear_in_vain():
            with transaction.atomic():
                store_for("default").clear("failed", [job_id], before=now())
                racing = started(retry, "default", job_id)
                transaction.set_rollback(True)
            return racing.result(30)

        assert clear_in_vain() is True
        assert states() == {job_id: "ready"}

    def test_what_was_retried_and_has_failed_again_is_young(self, store):
        job_id = UUID(explode.enqueue().id)
        drain()
        moment = now()
        (looked_at,) = store.ended("failed", before=moment, limit=10)
        assert retry("default", job_id)
        drain()
        assert store.clear("failed", [looked_at.job_id], before=moment) == set()
        assert states() == {job_id: "failed"}
        assert Attempt.objects.count() == 1

    @pytest.mark.usefixtures("row_locks")
    def test_two_who_clear_do_not_wait_for_each_other(self, store):
        ids = ended("finished", ago=DAY, count=10)
        mine, theirs = ids[:7], ids[3:]
        with uncommitted(store_for("default").clear, "finished", theirs, before=now()):
            assert store.clear("finished", mine, before=now()) == set(ids[:3])
        assert states() == {}

    def test_of_clear_retry_and_discard_one_wins_each_job(self):
        for _ in range(5):
            ids = ended("failed", ago=DAY, count=20, attempts=2)
            cleared, retried, discarded = in_threads(
                [
                    lambda ids=ids: store_for("default").clear(
                        "failed", ids, before=now()
                    ),
                    lambda ids=ids: [retry("default", each) for each in ids[::-1]],
                    lambda ids=ids: [discard("default", each) for each in ids],
                ]
            )
            standing = states()
            assert set(standing.values()) <= {"ready", "failed"}
            # What was retried may be discarded behind that: it is counted twice then.
            gone = len(cleared) + sum(discarded)
            assert gone == 20 - len(standing)
            assert len(standing) <= sum(retried)
            past = set(Attempt.objects.values_list("job_id", flat=True))
            assert past == set(standing)
            Job.objects.all().delete()


@pytest.mark.django_db(transaction=True)
class TestStatements:
    @pytest.mark.parametrize("state", STATES)
    def test_a_batch_is_one_look_and_one_transaction(self, store, state):
        ids = ended(state, ago=DAY, count=50, attempts=2)
        with statements() as looked:
            assert len(store.ended(state, before=now(), limit=500)) == 50
        assert len(looked) == 1
        with statements() as found:
            assert len(store.clear(state, ids, before=now())) == 50
        if connection.vendor == "postgresql":
            assert len(found) == 1
        else:
            assert len(found.changes) == 5
