"""How fast jobs begin under a rate, as they tell it themselves."""

from robust_queue import enqueue_all
from robust_queue.models import ScheduledExecution
from tests.settings import KIND
from tests.support.supervisors import until
from tests.testapp.witnessed_tasks import limited

RATE = 100
WORKERS = [{"threads": 3, "processes": 2, "polling_interval": 0.05}]
# One writer at a time is no place for two supervisors.
SUPERVISORS = 1 if KIND == "sqlite" else 2


def begun_within(seconds, *, start, witness):
    """Start supervisors that have work for longer; return how many begin in that time.

    Counted from the first one on. What was told to come back stays told, so that
    nothing waits that could have begun.
    """
    enqueue_all(limited.bind(n) for n in range(RATE * (seconds + 5)))
    supervisors = [start(workers=WORKERS) for _ in range(SUPERVISORS)]
    until(
        lambda: _is_over(witness, seconds), "that much has begun", timeout=10 + seconds
    )
    assert ScheduledExecution.objects.exists(), "there was work until the end"
    for each in supervisors:
        assert each.stop() == 0
        assert "goes on after an error" not in each.log
    moments = _moments(witness)
    assert len(witness.count("begins")) == len(moments), "each has begun once"
    return sum(each - moments[0] <= seconds for each in moments)


def _is_over(witness, seconds):
    moments = _moments(witness)
    return moments and moments[-1] - moments[0] > seconds


def _moments(witness):
    events = witness.events()
    return sorted(float(at) for event, _, _, at in events if event == "begins")
