"""The operators' verbs from code: on a result, or on an id."""

from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync

import robust_queue
from robust_queue.exceptions import NoQueueError, UndiscardableError
from robust_queue.lifecycle.claim import claim
from robust_queue.models import Job
from robust_queue.testing import drain
from tests.support.invariants import states
from tests.support.processes import a_process
from tests.testapp.tasks import elsewhere, explode, immediate, note

pytestmark = pytest.mark.django_db


def failed():
    result = explode.enqueue()
    drain()
    return result


FORMS = [lambda result: result, lambda result: result.id, lambda r: UUID(r.id)]


@pytest.mark.parametrize("named", FORMS, ids=["result", "text", "uuid"])
class TestHowJobsAreNamed:
    def test_retry(self, named):
        result = failed()
        assert robust_queue.retry(named(result)) is True
        assert robust_queue.retry(named(result)) is False
        assert states() == {UUID(result.id): "ready"}

    def test_discard(self, named):
        result = failed()
        assert robust_queue.discard(named(result)) is True
        assert robust_queue.discard(named(result)) is False
        assert states() == {}

    def test_rerun(self, named):
        result = failed()
        new = robust_queue.rerun(named(result), args=["again"], priority=3)
        assert (new.args, new.task.priority) == (["again"], 3)
        assert states() == {UUID(new.id): "ready"}


def test_the_async_variants():
    result = failed()
    assert async_to_sync(robust_queue.aretry)(result) is True
    new = async_to_sync(robust_queue.arerun)(result, queue_name="q")
    assert Job.objects.get().queue_name == "q"
    assert async_to_sync(robust_queue.adiscard)(new) is True
    assert states() == {}


def test_a_claimed_job_refuses_to_be_discarded():
    result = note.enqueue()
    claim("default", process_id=a_process())
    with pytest.raises(UndiscardableError, match="claimed by a worker"):
        robust_queue.discard(result)


@pytest.mark.django_db(databases=["default", "other"])
def test_a_result_knows_its_database_and_an_id_has_to_be_told():
    result = elsewhere.enqueue()
    assert robust_queue.discard(result.id) is False
    assert robust_queue.discard(result.id, using="other") is True
    assert robust_queue.discard(elsewhere.enqueue()) is True


def test_what_no_job_can_be():
    with pytest.raises(ValueError, match="'nonsense' is not the id of a job"):
        robust_queue.retry("nonsense")
    assert robust_queue.retry(uuid4()) is False
    with pytest.raises(NoQueueError, match="'immediate'"):
        robust_queue.discard(immediate.enqueue(1))
