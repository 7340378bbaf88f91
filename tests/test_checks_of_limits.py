"""What `manage.py check` says about limits that contradict each other."""

from dataclasses import replace

from django.core.checks import run_checks

from robust_queue import Concurrency, registry
from tests.testapp.limited_tasks import close_account, write_to_account


def found():
    return [each for each in run_checks() if each.id == "robust_queue.W010"]


def test_tasks_of_one_group_agree():
    assert close_account.concurrency[0].group == write_to_account.concurrency[0].group
    assert found() == []


def test_or_are_told_apart(monkeypatch):
    limit = Concurrency(key="", limit=2, group="accounts")
    other = replace(close_account, concurrency=[limit])
    monkeypatch.setitem(registry._declared, close_account.module_path, other)
    (message,) = found()
    assert "'accounts'" in message.msg
    assert f"{close_account.module_path} says 2" in message.msg
    assert f"{write_to_account.module_path} says 1" in message.msg
