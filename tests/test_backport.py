"""Tasks declared with ``django_tasks`` although Django has tasks of its own."""

import django
import django_tasks
import django_tasks.signals
import pytest

from robust_queue.compat import signals
from robust_queue.declaration import BackportTask, RobustTask
from robust_queue.testing import drain
from tests.testapp import backported, tasks

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        django.VERSION < (6, 0),
        reason="before 6.0 the backport is the framework",
    ),
]


@pytest.fixture
def heard():
    told = []
    names = ("task_enqueued", "task_started", "task_finished")
    connected = []
    for module, label in ((django_tasks.signals, "backport"), (signals, "django")):
        for name in names:

            def remember(sender, task_result, name=name, label=label, **kwargs):
                told.append((label, name, task_result.status))

            getattr(module, name).connect(remember, weak=False)
            connected.append((getattr(module, name), remember))
    yield told
    for signal, receiver in connected:
        signal.disconnect(receiver)


def test_it_is_one_of_ours_and_knows_where_it_came_from():
    assert type(backported.greet) is BackportTask
    assert type(tasks.add) is RobustTask


def test_it_runs_and_returns_results():
    result = backported.greet.enqueue("World")
    drain()
    result.refresh()
    assert result.return_value == "Hello, World"
    assert backported.greet.get_result(result.id) == result


def test_both_frameworks_signals_fire_for_it(heard):
    backported.greet.enqueue("World")
    drain()
    for label in ("backport", "django"):
        assert [told[1:] for told in heard if told[0] == label] == [
            ("task_enqueued", "READY"),
            ("task_started", "RUNNING"),
            ("task_finished", "SUCCESSFUL"),
        ]


def test_only_djangos_own_for_the_others(heard):
    tasks.add.enqueue(1)
    drain()
    assert {label for label, _, _ in heard} == {"django"}


def test_its_context_is_the_backports():
    backported.family_of_the_context.enqueue()
    assert [r.return_value for r in drain()] == ["django_tasks.base"]


def test_policies_and_variations():
    varied = backported.at_once.using(priority=5)
    assert (type(varied), varied.enqueue_on_commit) == (BackportTask, False)


def test_a_plain_task_of_the_backport_that_is_sent_here():
    sent = backported.immediate.using(backend="default")
    result = sent.enqueue(3)
    assert [r.return_value for r in drain()] == [3]
    assert sent.get_backend().get_result(result.id).is_finished
