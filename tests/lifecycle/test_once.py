"""Requests that come again are carried out once."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from robust_queue.declaration import Call
from robust_queue.exceptions import (
    DuplicateTaskError,
    EnqueueError,
    RequestReusedError,
)
from robust_queue.lifecycle import once
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.once import REMEMBERED, key_of, write_once
from robust_queue.models import Job, UniqueLock
from tests.support.invariants import states
from tests.support.threads import in_threads, started, uncommitted
from tests.testapp import limited_tasks, tasks, unique_tasks

pytestmark = pytest.mark.django_db


def prepared(task, *args):
    (each,) = task.get_backend().prepare_all([Call(task, list(args), {})])
    return each


def written(*calls, keys):
    """The ids that calls are answered with, each a task and its arguments."""
    each = [prepared(*call) for call in calls]
    write_once("default", each, keys)
    return [UUID(it.result.id) for it in each]


def key():
    return key_of("somebody", uuid4())


class TestOneRequest:
    def test_is_answered_with_the_job_that_is_there(self):
        name = key()
        first = written((tasks.note, "x"), keys=[name])
        assert written((tasks.note, "x"), keys=[name]) == first
        assert states() == {first[0]: "ready"}

    def test_without_a_name_is_a_new_one_each_time(self):
        assert written((tasks.note, "x"), keys=[""]) != written(
            (tasks.note, "x"), keys=[""]
        )
        assert not UniqueLock.objects.exists()

    def test_of_another_asker_is_another_one(self):
        request_id = uuid4()
        names = [key_of(asker, request_id) for asker in ("ada", "bob")]
        first, second = (written((tasks.note,), keys=[name]) for name in names)
        assert first != second

    def test_is_remembered_when_its_job_is_gone(self):
        name = key()
        (first,) = written((tasks.note, "x"), keys=[name])
        discard("default", first)
        assert written((tasks.note, "x"), keys=[name]) == [first]
        assert not Job.objects.exists()

    def test_is_forgotten_after_a_day(self):
        name = key()
        (first,) = written((tasks.note,), keys=[name])
        lock = UniqueLock.objects.get()
        assert lock.expires_at == Job.objects.get().enqueued_at + REMEMBERED
        UniqueLock.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        (second,) = written((tasks.note,), keys=[name])
        assert {*states()} == {first, second}
        assert UniqueLock.objects.get().job_id == second

    @pytest.mark.parametrize("other", [(tasks.note, "y"), (tasks.add, "x")])
    def test_for_something_else_is_refused(self, other):
        name = key()
        (first,) = written((tasks.note, "x"), keys=[name])
        with pytest.raises(RequestReusedError, match="request_id"):
            written(other, keys=[name])
        assert {*states()} == {first}

    def test_that_was_refused_may_come_again(self):
        unique_tasks.once_or_error.enqueue(1)
        name = key()
        with pytest.raises(DuplicateTaskError):
            written((unique_tasks.once_or_error, 1), keys=[name])
        Job.objects.all().delete()
        UniqueLock.objects.all().delete()
        (job_id,) = written((unique_tasks.once_or_error, 1), keys=[name])
        assert states() == {job_id: "ready"}

    @pytest.mark.django_db(transaction=True)
    def test_for_a_limited_task_gets_a_slot_with_the_commit(self):
        name = key()
        for _ in range(2):
            (job_id,) = written((limited_tasks.one_by_account, "customer"), keys=[name])
        assert states() == {job_id: "ready"}


class TestUniqueTasks:
    def test_lead_to_the_job_that_was_there_before(self):
        result, name = unique_tasks.once.enqueue(1), key()
        first = written((unique_tasks.once, 1), keys=[name])
        assert first == [UUID(result.id)]
        discard("default", result.id)
        assert written((unique_tasks.once, 1), keys=[name]) == first
        assert not Job.objects.exists()

    def test_are_told_by_their_key_and_not_by_their_arguments(self):
        name = key()
        (first,) = written((unique_tasks.latest, "ada", "one"), keys=[name])
        assert written((unique_tasks.latest, "ada", "one"), keys=[name]) == [first]
        assert {*states()} == {first}


class TestMany:
    def test_of_which_some_were_there_before(self):
        names = [key() for _ in range(3)]
        (second,) = written((tasks.note, 2), keys=names[1:2])
        calls = [(tasks.note, n) for n in (1, 2, 3)]
        found = written(*calls, keys=names)
        assert found[1] == second
        assert {*found} == {*states()}
        assert len({*found}) == 3

    def test_named_or_not(self):
        name = key()
        calls = [(tasks.note, 1), (tasks.note, 1)]
        first, again = (written(*calls, keys=[name, ""]) for _ in range(2))
        assert first[0] == again[0]
        assert len({*first, *again}) == 3

    @pytest.mark.parametrize("keys", [["", ""], None], ids=["unnamed", "named"])
    def test_are_written_together_or_not_at_all(self, keys):
        """Also those of another alias of the same database."""
        there = prepared(tasks.note, "x")
        elsewhere = prepared(tasks.note, "x")
        apart = replace(elsewhere.destination, alias="another")
        elsewhere = replace(elsewhere, destination=apart)
        elsewhere.job.id = there.job.id
        with pytest.raises(EnqueueError):
            write_once("default", [there, elsewhere], keys or [key(), key()])
        assert not Job.objects.exists()
        assert not UniqueLock.objects.exists()


@pytest.mark.django_db(transaction=True)
class TestAtTheSameTime:
    def test_one_is_carried_out(self):
        for _ in range(5):
            name = key()
            ask = [lambda name=name: written((tasks.note, "x"), keys=[name])] * 4
            found = in_threads(ask)
            assert len({each for (each,) in found}) == 1
        assert Job.objects.count() == 5

    @pytest.mark.usefixtures("row_locks")
    def test_the_second_waits_for_the_first_and_is_answered_alike(self):
        """Else it would be told that there is nothing, or be written twice."""
        name = key()
        with uncommitted(written, (tasks.note, "x"), keys=[name]) as first:
            second = started(written, (tasks.note, "x"), keys=[name])
        assert second.result(30) == first
        assert Job.objects.count() == 1

    @pytest.mark.usefixtures("row_locks")
    def test_when_the_first_comes_to_nothing_the_second_is_carried_out(self):
        name = key()

        def give_up():
            written((tasks.note, "x"), keys=[name])
            transaction.set_rollback(True)

        with uncommitted(give_up):
            second = started(written, (tasks.note, "x"), keys=[name])
        (job_id,) = second.result(30)
        assert states() == {job_id: "ready"}

    def test_those_in_another_order_do_not_wait_for_each_other(self):
        names = [key() for _ in range(20)]
        calls = [(tasks.note, n) for n in range(20)]

        def ask(step):
            found = written(*calls[::step], keys=names[::step])
            return found[::step]

        first, second = in_threads([lambda: ask(1), lambda: ask(-1)])
        assert first == second
        assert Job.objects.count() == 20

    def test_a_name_whose_time_is_over_goes_to_one_of_them(self):
        for _ in range(5):
            name = key()
            written((tasks.note, "old"), keys=[name])
            UniqueLock.objects.update(expires_at=timezone.now() - timedelta(days=1))
            ask = [lambda name=name: written((tasks.note, "new"), keys=[name])] * 3
            assert len({each for (each,) in in_threads(ask)}) == 1
            assert Job.objects.filter(arguments__contains="new").count() == 1
            Job.objects.all().delete()


def test_names_that_come_and_go_are_given_up_at_last(monkeypatch):
    store = once.store_for("default")
    monkeypatch.setattr(type(store), "lock_keys", lambda self, locks: False)
    with pytest.raises(EnqueueError, match="Try again"):
        written((tasks.note,), keys=[key()])
