"""Hooks: functions that are called when something happens to processes and queues."""

import importlib
import sys
from functools import partial, wraps

import pytest

import robust_queue
from robust_queue import hooks
from robust_queue.lifecycle.pause import pause, resume
from robust_queue.signals import (
    ProcessFacts,
    process_exited,
    process_replaced,
    process_started,
    process_stopping,
    tell,
)
from tests.support.receivers import OURS, receivers_kept

MODULE = """
import robust_queue
called = []

@robust_queue.on_worker_start
def warm_up():
    called.append("warm")

@robust_queue.on_worker_start
def _():
    called.append("first")

@robust_queue.on_worker_start
def _():
    called.append("second")
"""


@pytest.fixture(autouse=True)
def forgotten():
    with receivers_kept(*OURS):
        yield


class Actor:
    pass


def a_process(kind):
    return ProcessFacts(kind=kind, name=f"{kind}-1", pid=1, database="default")


def happens(signal, kind="Worker", **facts):
    tell(signal, Actor, process=a_process(kind), **facts)


@pytest.mark.parametrize(
    ("prefix", "kind"),
    [
        ("on", "Supervisor"),
        ("on_worker", "Worker"),
        ("on_dispatcher", "Dispatcher"),
        ("on_scheduler", "Scheduler"),
    ],
)
def test_each_kind_of_process_has_its_own(prefix, kind):
    moments = {
        "start": process_started,
        "stop": process_stopping,
        "exit": process_exited,
    }
    called = []
    for name in moments:
        getattr(robust_queue, f"{prefix}_{name}")(_noting(called, name))
    for signal in moments.values():
        for each in ("Supervisor", "Worker", "Dispatcher", "Scheduler"):
            happens(signal, each)
    assert called == [("start", kind), ("stop", kind), ("exit", kind)]


def _noting(called, name):
    def note(process):
        called.append((name, process.kind))

    return note


def test_a_process_that_was_replaced():
    called = []
    robust_queue.on_process_replaced(called.append)
    happens(process_replaced, "Dispatcher", reason="it was killed")
    assert called == [a_process("Dispatcher")]


@pytest.mark.django_db(transaction=True)
def test_queues_that_are_paused_and_resumed():
    called = []
    robust_queue.on_queue_paused(lambda name: called.append(("paused", name)))
    robust_queue.on_queue_resumed(lambda: called.append("resumed"))
    pause("default", "mail")
    resume("default", "mail")
    assert called == [("paused", "mail"), "resumed"]


class TestFunctions:
    def test_one_is_given_back_as_it_was(self):
        def warm_up():
            pass

        assert robust_queue.on_worker_start(warm_up) is warm_up

    def test_one_may_take_nothing_or_the_facts(self):
        called = []
        robust_queue.on_worker_start(lambda: called.append("nothing"))
        robust_queue.on_worker_start(lambda process: called.append(process.name))
        robust_queue.on_worker_start(lambda process=None: called.append(process.pid))
        robust_queue.on_worker_start(called.append)
        happens(process_started)
        assert called == ["nothing", "Worker-1", 1, a_process("Worker")]

    def test_one_that_fails_is_reported_and_harms_nobody(self, caplog):
        called = []

        @robust_queue.on_worker_start
        def fail():
            raise SystemExit("no")

        robust_queue.on_worker_start(lambda: called.append(1))
        happens(process_started)
        assert called == [1]
        assert "test_hooks.TestFunctions" in caplog.text
        assert "fail was told of a signal" in caplog.text

    def test_one_without_arguments_is_welcome_in_debug(self, settings):
        settings.DEBUG = True  # where Django judges receivers
        called = []
        robust_queue.on_worker_start(lambda: called.append(1))
        happens(process_started)
        assert called == [1]

    @pytest.mark.parametrize("value", [None, 3, "shop.hooks.warm_up"])
    def test_something_else_is_refused(self, value):
        with pytest.raises(TypeError, match=r"@robust_queue.on_exit takes a function"):
            robust_queue.on_exit(value)

    def test_a_coroutine_function_is_refused(self):
        async def warm_up():
            pass

        class Warmer:
            async def __call__(self):
                pass

        for each in (warm_up, partial(warm_up), Warmer()):
            with pytest.raises(TypeError, match="nobody would await it"):
                robust_queue.on_worker_start(each)

    @pytest.mark.parametrize("function", [lambda a, b: 0, lambda *, a: 0])
    def test_one_that_asks_for_more_is_refused(self, function):
        with pytest.raises(TypeError, match="without arguments, or with one"):
            robust_queue.on_worker_start(function)


class TestRegisteredTwice:
    def test_the_same_function_is_called_once(self):
        called = []

        def warm_up():
            called.append(1)

        robust_queue.on_worker_start(warm_up)
        robust_queue.on_worker_start(warm_up)
        happens(process_started)
        assert called == [1]

    def test_it_may_serve_several_hooks(self):
        called = []

        def warm_up():
            called.append(1)

        robust_queue.on_worker_start(warm_up)
        robust_queue.on_dispatcher_start(warm_up)
        happens(process_started, "Worker"), happens(process_started, "Dispatcher")
        assert called == [1, 1]

    def test_a_module_may_be_imported_again(self, tmp_path, monkeypatch):
        (tmp_path / "hooked_module.py").write_text(MODULE)
        monkeypatch.syspath_prepend(tmp_path)
        importlib.import_module("hooked_module")
        monkeypatch.delitem(sys.modules, "hooked_module")
        again = importlib.import_module("hooked_module")
        happens(process_started)
        assert again.called == ["warm", "first", "second"]
        monkeypatch.delitem(sys.modules, "hooked_module")

    def test_functions_of_one_name_are_not_the_same(self):
        called = []
        for number in (1, 2):
            robust_queue.on_worker_start(_noting(called, number))
        happens(process_started)
        assert called == [(1, "Worker"), (2, "Worker")]


def test_one_that_is_wrapped_is_told_by_its_own_name():
    def outer(function):
        @wraps(function)
        def inner():
            return function()

        return inner

    robust_queue.on_worker_start(
        outer(test_one_that_is_wrapped_is_told_by_its_own_name)
    )
    assert process_started.receivers[-1][0][0] == (
        "on_worker_start",
        (
            __name__,
            "test_one_that_is_wrapped_is_told_by_its_own_name",
            test_one_that_is_wrapped_is_told_by_its_own_name.__code__.co_firstlineno,
        ),
    )


def test_every_hook_is_a_public_name():
    every = {
        name for name, value in vars(hooks).items() if isinstance(value, hooks.Hook)
    }
    assert len(every) == 15
    assert every <= set(robust_queue.__all__)
    assert all(getattr(robust_queue, name) is getattr(hooks, name) for name in every)
