"""What a dispatcher tells, minute by minute, of jobs that wait."""

from types import SimpleNamespace
from uuid import uuid4

import pytest

from robust_queue.configuration import DispatcherConfiguration
from robust_queue.models import Job, ReadyExecution, Rollup
from robust_queue.processes import clock, gauge
from robust_queue.processes.dispatcher import Dispatcher
from robust_queue.processes.gauge import Gauge
from tests.support import backlog
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

NOON = 1_794_830_400


class Minutes:
    """A gauge that is read once in each minute that passes."""

    def __init__(self, monkeypatch):
        self.now = NOON
        monkeypatch.setattr(gauge, "time", SimpleNamespace(time=lambda: self.now))
        self.gauge = Gauge("default", uuid4())

    def read(self):
        """Returns the statements that it took."""
        with statements() as sent:
            self.gauge.read()
        self.now += 60
        return sent.changes


@pytest.fixture
def minutes(monkeypatch):
    return Minutes(monkeypatch)


def depths(span, queue=""):
    rows = Rollup.objects.filter(queue_name=queue, span=span).order_by("at")
    return list(rows.values_list("depth", flat=True))


def test_each_queue_and_all_of_them_together(minutes):
    backlog.fill(50)
    assert len(minutes.read()) == 4
    assert depths(60) == [50]
    assert depths(60, "queue_3") == [10]
    assert Rollup.objects.filter(span=60, latency__isnull=False).count() == 6


def test_longer_times_have_the_most_there_was(minutes):
    for count in (5, 20, 10):
        Job.objects.all().delete()
        backlog.fill(count, queue="mail")
        minutes.read()
    assert depths(60, "mail") == [5, 20, 10]
    assert depths(900, "mail") == depths(3600, "mail") == [20]
    minutes.now = NOON + 900
    minutes.read()
    assert depths(900, "mail") == [20, 10]
    assert depths(3600, "mail") == [20]


def test_nothing_is_told_once_and_then_no_more(minutes):
    backlog.fill(3, queue="mail")
    minutes.read()
    ReadyExecution.objects.all().delete()
    assert len(minutes.read()) == 3
    assert depths(60) == depths(60, "mail") == [3, 0]
    assert len(minutes.read()) == 2
    assert depths(60) == [3, 0]


def test_once_a_minute(minutes):
    minutes.read()
    minutes.now -= 30
    assert minutes.read() == []


def test_a_dispatcher_sees_to_it(monkeypatch):
    identity = uuid4()
    options = DispatcherConfiguration()
    it = Dispatcher(options, database="default", identity=identity)
    backlog.fill(5)
    it.turn()
    assert not Rollup.objects.exists(), "there is something more urgent to do"
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + 60)
    it.turn()
    assert set(Rollup.objects.values_list("process_id", flat=True)) == {identity}
