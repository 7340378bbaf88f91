"""Which jobs run, in which order, and by whom: queues, pauses, schedules."""

import json
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.lifecycle.pause import pause, resume
from robust_queue.models import (
    Job,
    Process,
    ReadyExecution,
    RecurringExecution,
    ScheduledExecution,
)
from robust_queue.processes.exits import ExitCode
from tests.support import backlog
from tests.support.invariants import state_of, states
from tests.support.supervisors import marks
from tests.testapp.models import Mark
from tests.testapp.process_tasks import mark, rest


def are(state, *results):
    return all(state_of(each) == state for each in results)


def in_order(*queues):
    """A worker that runs one job after the other."""
    return [{"queues": queues, "threads": 1, "polling_interval": 0.05}]


def put(queue, label, priority=0):
    return mark.using(queue_name=queue, priority=priority).enqueue(label)


# ── Order ──────────────────────────────────────────────────────────────────────


def test_the_order_of_queues_beats_priority_and_priority_beats_age(supervised):
    results = [
        put("second", "e", priority=-100),
        put("second", "f", priority=-100),
        put("first", "c"),
        put("first", "d"),
        put("first", "a", priority=-7),
        put("first", "b", priority=-7),
        put("second", "g", priority=50),
    ]
    supervisor = supervised(workers=in_order("first", "second")).until_up()
    supervisor.until(lambda: are("finished", *results), "all have run")
    assert "".join(marks()) == "abcdefg"


def test_wherever_all_queues_are_meant_priority_alone_decides(supervised):
    results = [
        put("beta", "c"),
        put("alpha", "d", priority=1),
        put("gamma", "a", priority=-2),
        put("delta", "b", priority=-1),
    ]
    supervisor = supervised(workers=in_order("*")).until_up()
    supervisor.until(lambda: are("finished", *results), "all have run")
    assert "".join(marks()) == "abcd"


def test_twenty_queues_by_prefix_among_exact_names(supervised):
    tenants = [f"tenant_{n:02}" for n in range(20)]
    for queue in reversed(["vip", *tenants, "rest"]):
        put(queue, f"{queue} late", priority=9)
        put(queue, f"{queue} soon", priority=-9)
    strangers = [put(name, "never") for name in ("other", "Tenant_1", "tenan", "vip2")]
    # Twice named: the first place counts.
    queues = in_order("vip", "tenant_07", "tenant*", "rest")
    supervisor = supervised(workers=queues).until_up()
    supervisor.until(lambda: len(marks()) == 44, "all have run")
    named = ["vip", "tenant_07", *(each for each in tenants if each != "tenant_07")]
    expected = [f"{queue} {when}" for queue in named for when in ("soon", "late")]
    assert marks() == [*expected, "rest soon", "rest late"]
    assert are("ready", *strangers)
    assert "'other' has ready jobs, and no worker" in supervisor.log
    assert supervisor.stop() == ExitCode.DONE


def test_workers_run_only_what_they_serve(supervised):
    served = {"mail": 0, "images": 0, "other": 0}
    workers = [
        {"queues": "mail", "threads": 2, "polling_interval": 0.05},
        {"queues": ["images"], "threads": 1, "polling_interval": 0.05},
        {"queues": ["mail", "other"], "threads": 1, "polling_interval": 0.05},
    ]
    supervisor = supervised(workers=workers).until_up(3)
    results = [put(queue, queue) for queue in served for _ in range(8)]
    supervisor.until(lambda: are("finished", *results), "all have run")
    queues_of = {
        row.pid: json.loads(row.metadata)["queues"] for row in supervisor.rows("Worker")
    }
    for each in Mark.objects.all():
        assert each.label in queues_of[each.pid]
    assert Counter(marks()) == dict.fromkeys(served, 8)


# ── Pauses ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("queues", [("*",), ("resting", "open"), ("rest*", "*")])
def test_a_paused_queue_is_passed_over_until_it_is_resumed(supervised, queues):
    pause("default", "resting")
    held = [put("resting", f"held {n}", priority=-100) for n in range(3)]
    others = [put("open", f"open {n}", priority=100) for n in range(3)]
    supervisor = supervised(workers=in_order(*queues)).until_up()
    supervisor.until(lambda: are("finished", *others), "the others have run")
    assert are("ready", *held)
    assert not marks("held")
    resume("default", "resting")
    supervisor.until(lambda: are("finished", *held), "they have run")
    assert marks("held") == ["held 0", "held 1", "held 2"]


def test_a_pause_leaves_alone_what_runs(supervised):
    running = rest.enqueue("running", 0.8)
    next_one = mark.enqueue("next")
    supervisor = supervised(workers=in_order("*")).until_up()
    supervisor.until(marks, "the first runs")
    pause("default", "default")
    supervisor.until(lambda: are("finished", running), "it has finished")
    after = put("open", "after")
    supervisor.until(lambda: are("finished", after), "another queue is served")
    assert are("ready", next_one)
    resume("default", "default")
    supervisor.until(lambda: are("finished", next_one), "the next has run")


# ── Dispatchers ────────────────────────────────────────────────────────────────


def overdue(count):
    """So many jobs whose time has come, made by the database itself."""
    backlog.fill(count)
    moment = timezone.now() - timedelta(seconds=5)
    ready = ReadyExecution.objects.values("job_id", "queue_name", "priority")
    ScheduledExecution.objects.bulk_create(
        ScheduledExecution(**row, created_at=moment, scheduled_at=moment)
        for row in ready
    )
    ReadyExecution.objects.all().delete()


NOBODY = [{"queues": "nobody's", "threads": 1, "polling_interval": 1}]


def test_a_dispatcher_does_not_pause_between_full_batches(supervised):
    overdue(600)
    supervisor = supervised(
        workers=NOBODY, dispatchers=[{"batch_size": 50, "polling_interval": 20}]
    ).until_up()
    supervisor.until(lambda: ReadyExecution.objects.count() == 600, timeout=8)
    assert len(states()) == 600
    assert supervisor.stop() == ExitCode.DONE


def test_several_dispatchers_neither_lose_nor_double_anything(supervised):
    overdue(600)
    for _ in range(2):
        supervised(
            workers=NOBODY,
            dispatchers=[{"batch_size": 7, "polling_interval": 0.05}] * 2,
        )
    soon = timezone.now() + timedelta(seconds=1)
    later = [mark.using(run_after=soon).enqueue(f"{n}") for n in range(40)]
    supervisor = supervised(
        workers=in_order("default"),
        dispatchers=[{"batch_size": 3, "polling_interval": 0.05}],
    )
    supervisor.until(lambda: are("finished", *later), "what was for later has run")
    assert sorted(map(int, marks())) == list(range(40))
    supervisor.until(lambda: not ScheduledExecution.objects.exists(), "none is left")
    assert len(states()) == 640


def test_what_is_for_later_runs_when_its_time_has_come(supervised):
    supervisor = supervised().until_up()
    supervisor.until(lambda: supervisor.rows("Dispatcher"), "its dispatcher is up")
    moment = timezone.now() + timedelta(seconds=0.5)
    result = mark.using(run_after=moment).enqueue("it")
    supervisor.until(lambda: are("finished", result), "it has run")
    assert moment <= Mark.objects.get().at < moment + timedelta(seconds=1.5)


# ── Schedulers ─────────────────────────────────────────────────────────────────


def test_two_schedulers_enqueue_each_instant_once(supervised):
    modules = ["tests.testapp.process_tasks", "tests.testapp.every_second"]
    both = [supervised(task_modules=modules) for _ in range(2)]
    for supervisor in both:
        supervisor.until(lambda it=supervisor: it.rows("Scheduler"), "its scheduler")
        assert "every second" in supervisor.log
    both[0].until(lambda: RecurringExecution.objects.count() >= 3, "three instants")
    assert [each.stop() for each in both] == [ExitCode.DONE] * 2
    executions = RecurringExecution.objects.order_by("run_at")
    instants = [each.run_at for each in executions]
    assert len(set(instants)) == len(instants)
    assert all(each.microsecond == 0 for each in instants)
    assert set(executions.values_list("job_id", flat=True)) == set(
        Job.objects.values_list("pk", flat=True)
    )
    assert len(marks()) + ReadyExecution.objects.count() == len(instants)
    assert not Process.objects.exists()
