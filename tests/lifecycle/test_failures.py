"""What has failed alike is told together."""

from datetime import timedelta

import pytest
from django.utils import timezone

from robust_queue.lifecycle import failures as grouping
from robust_queue.lifecycle.discard import discard_matching
from robust_queue.lifecycle.failures import Fingerprint, failures, shape_of
from robust_queue.lifecycle.retry import retry_matching
from robust_queue.models import FailedExecution
from tests.support import rows
from tests.support.invariants import states
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

REFUSED = "shop.errors.CardRefused"


def fingerprint(**values):
    given = {"task_path": rows.TASK, "exception_class": REFUSED, "kind": ""}
    return Fingerprint(**{**given, **values})


def test_nothing_has_failed():
    assert failures("default") == grouping.Failures([], looked_at=0)


def test_failures_are_grouped_by_task_exception_and_kind():
    for _ in range(3):
        rows.failed(exception_class=REFUSED)
    rows.failed(exception_class=REFUSED, kind="timed_out")
    rows.failed(rows.job(task_path="shop.tasks.other"), exception_class=REFUSED)
    rows.failed(rows.job(task_path="shop.tasks.other"), exception_class=REFUSED)
    found = failures("default")
    assert [(each.fingerprint, each.count) for each in found.groups] == [
        (fingerprint(), 3),
        (fingerprint(task_path="shop.tasks.other"), 2),
        (fingerprint(kind="timed_out"), 1),
    ]
    assert found.looked_at == 6


def test_a_group_knows_its_first_and_last_and_what_the_last_one_said():
    now = timezone.now().replace(microsecond=0)
    for days in (2, 1, 3):
        rows.failed(finished_at=now - timedelta(days=days), message=f"{days} days\nago")
    (group,) = failures("default").groups
    assert group.first_at == now - timedelta(days=3)
    assert group.last_at == now - timedelta(days=1)
    assert group.example == "1 days"
    assert group.usual_messages == [("# days", 3)]


def test_only_the_latest_are_looked_at(monkeypatch):
    monkeypatch.setattr(grouping, "MOST_FAILURES", 2)
    for _ in range(2):
        rows.failed()
    assert failures("default").is_cut is False
    old = timezone.now() - timedelta(days=1)
    rows.failed(exception_class=REFUSED, finished_at=old)
    found = failures("default")
    assert found.is_cut is True
    assert [each.count for each in found.groups] == [2]


def test_only_the_largest_groups_are_told(monkeypatch):
    monkeypatch.setattr(grouping, "MOST_GROUPS", 1)
    for name in ("a", "b", "b", "c"):
        rows.failed(exception_class=name)
    found = failures("default")
    assert [each.fingerprint.exception_class for each in found.groups] == ["b"]
    assert found.left_out == 2


def test_one_statement_which_leaves_what_is_wide_behind():
    for _ in range(5):
        rows.failed(message="x" * 5_000)
    with statements() as sent:
        (group,) = failures("default").groups
    assert len(sent) == 1
    assert "traceback" not in sent[0]
    assert len(group.example) == grouping.HEAD


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        ("", ""),
        ("\n  order 17 of 2,300.50 at 10:30\nmore", "order # of # at #"),
        ("job 0190a6a0-7b1c-7def-8000-00aa11bb22cc is gone", "job # is gone"),
        ("<Cart object at 0x7f31AB>", "<Cart object at #>"),
        ("commit 4f0e9d8c7b6a59483726150403020100ffeeddcc", "commit #"),
        ("a decade of feed", "a decade of feed"),
    ],
)
def test_messages_that_mean_the_same_look_the_same(message, shape):
    assert shape_of(message) == shape


def test_many_messages_are_summed_up():
    for word in ("a", "b", "c", "d", "d"):
        rows.failed(message=word)
    (group,) = failures("default").groups
    assert group.usual_messages[0] == ("d", 2)
    assert len(group.usual_messages) == 3
    assert group.other_messages == 1


def test_a_group_is_retried_and_no_other_one():
    mine = rows.failed(exception_class="Refused")
    # The end of a path is not the path, and an empty one is not any.
    others = [
        rows.failed(exception_class="shop.Refused"),
        rows.failed(exception_class=""),
        rows.failed(exception_class="Refused", kind="crashed"),
        rows.failed(rows.job(task_path="shop.tasks.o"), exception_class="Refused"),
    ]
    tally = retry_matching("default", fingerprint(exception_class="Refused"))
    assert tally.done == 1
    assert states() == {mine.pk: "ready", **{row.pk: "failed" for row in others}}


def test_a_group_without_an_exception_is_not_everything():
    rows.failed(exception_class="")
    other = rows.failed()
    assert discard_matching("default", fingerprint(exception_class="")).done == 1
    assert [row.pk for row in FailedExecution.objects.all()] == [other.pk]


def test_a_group_is_counted_no_further_than_asked():
    for _ in range(3):
        rows.failed(exception_class=REFUSED)
    assert grouping.count_up_to("default", fingerprint(), 10) == 3
    assert grouping.count_up_to("default", fingerprint(), 2) == 2
