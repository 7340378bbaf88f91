"""Workers that wait in a real web server: for jobs, and in nobody's way."""

import json
import shutil
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.lifecycle.tokens import create_token
from robust_queue.models import ApiToken, ClaimedExecution, Process
from tests.support.api_servers import SERVERS, ApiServer, Connection, closed
from tests.support.supervisors import until
from tests.testapp.process_tasks import mark

WAITERS = 10


@pytest.fixture
def server_of(transactional_db, tmp_path):
    """Starts servers of the API; whatever is left of them ends with the test."""
    started = []

    def start(kind, **options):
        server = ApiServer(tmp_path, kind, **options)
        started.append(server)
        server.start()
        server.until(server.answers, "it serves pages")
        return server

    yield start
    for each in started:
        each.clean_up()
        shutil.rmtree(each.door.parent, ignore_errors=True)


@pytest.fixture
def enlisted():
    """Makes workers of a server, each at a connection of its own."""
    made = []

    def make(server):
        _, token = create_token("default", name="outside", scopes=["work:*"])
        with closed(Connection(server.door, token)) as door:
            told = door.call(queues=["default"])
        path = f"/queue/v1/workers/{told['id']}"
        made.append(Connection(server.door, told["secret"], path))
        return made[-1]

    yield make
    for each in made:
        each.close()
    ApiToken.objects.all().delete()


@contextmanager
def waiting(doors, **told):
    """Has workers wait, for the block; gives what they are going to hear."""
    with ThreadPoolExecutor(len(doors)) as threads:
        begun = threading.Barrier(len(doors) + 1)

        def wait(door):
            door.send_call("/dequeue", **told)
            begun.wait()
            return json.loads(door.getresponse().read())["jobs"]

        heard = [threads.submit(wait, door) for door in doors]
        begun.wait()
        yield heard


@pytest.mark.parametrize("kind", SERVERS)
def test_those_who_wait_are_in_nobodys_way(server_of, enlisted, kind):
    server = server_of(kind)
    other = enlisted(server)
    with waiting([enlisted(server) for _ in range(WAITERS)], wait=5) as heard:
        for _ in range(5):
            assert other.call("/ping")["alive"]
        assert not any(each.done() for each in heard)


@pytest.mark.parametrize("kind", SERVERS)
def test_a_job_is_given_to_one_of_those_who_wait(server_of, enlisted, kind):
    server = server_of(kind)
    with waiting([enlisted(server) for _ in range(3)], wait=3, limit=5) as heard:
        result = mark.enqueue("waited for")
        until(lambda: any(each.done() for each in heard), "somebody has it")
    given = [job["id"] for each in heard for job in each.result()]
    assert given == [result.id]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="no pool, no activity")
@pytest.mark.parametrize("kind", SERVERS)
def test_those_who_wait_hold_neither_a_transaction_nor_what_a_pool_lends(
    server_of, enlisted, kind
):
    options = {"pool": {"min_size": 1, "max_size": 2, "timeout": 3}}
    settings = {
        "database_options": options,
        "database": {"ATOMIC_REQUESTS": True, "CONN_MAX_AGE": 0},
    }
    server = server_of(kind, settings=settings)
    other = enlisted(server)
    with waiting([enlisted(server) for _ in range(WAITERS)], wait=4) as heard:
        for _ in range(20):
            assert other.call("/ping")["alive"]
            assert not idle_in_transaction()
        assert not any(each.done() for each in heard)
    assert [each.result() for each in heard] == [[]] * WAITERS


def idle_in_transaction():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND state = 'idle in transaction'"
            " AND state_change < now() - interval '50 ms'"
        )
        return cursor.fetchone()[0]


def test_who_has_hung_up_gets_nothing(server_of, enlisted):
    server = server_of("gunicorn", api_longest_wait=300)
    gone, other = enlisted(server), enlisted(server)
    gone.send_call("/dequeue", wait=300)
    until(lambda: has_been_heard_of(gone), "it waits")
    gone.close()
    until(lambda: is_silent(gone), "nobody looks for it any more")
    result = mark.enqueue("for somebody else")
    (job,) = other.call("/dequeue", wait=10)["jobs"]
    assert job["id"] == result.id


def has_been_heard_of(door):
    row = row_of(door)
    return row.last_heartbeat_at > row.created_at


def is_silent(door):
    # Whoever waits is heard of once in a second, where so little is enough to be dead.
    return timezone.now() - row_of(door).last_heartbeat_at > timedelta(seconds=2.5)


def row_of(door):
    return Process.objects.get(pk=door.path.rpartition("/")[2])


def test_what_nobody_has_heard_is_told_again(server_of, enlisted):
    server = server_of("uvicorn")
    worker, name = enlisted(server), str(uuid.uuid4())
    worker.send_call("/dequeue", wait=10, request_id=name)
    until(lambda: has_been_heard_of(worker), "it waits")
    worker.close()
    result = mark.enqueue("on its way to nobody")
    until(ClaimedExecution.objects.exists, "it is on its way")
    (job,) = worker.call("/dequeue", request_id=name)["jobs"]
    assert job["id"] == result.id
