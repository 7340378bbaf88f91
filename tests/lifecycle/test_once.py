"""Requests that come again are carried out once."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone

from robust_queue.compat import signals
from robust_queue.declaration import Call
from robust_queue.exceptions import (
    DuplicateTaskError,
    EnqueueError,
    RequestReusedError,
)
from robust_queue.lifecycle import once
from robust_queue.lifecycle.discard import discard
from robust_queue.lifecycle.once import REMEMBERED, Name, forget, write_once
from robust_queue.models import Job, NamedRequest
from robust_queue.stores import store_for
from tests.support.invariants import states
from tests.support.statements import statements
from tests.support.threads import in_threads, started, uncommitted
from tests.testapp import limited_tasks, tasks, unique_tasks

pytestmark = pytest.mark.django_db

PAST = timedelta(seconds=1)


def name(sent="", asker="somebody"):
    return Name.of(asker, uuid4(), sent)


def prepared(task, *args):
    (each,) = task.get_backend().prepare_all([Call(task, list(args), {})])
    return each


def written(*calls, names):
    """The ids that calls are answered with, each a task and its arguments."""
    each = [prepared(*call) for call in calls]
    write_once("default", each, names)
    return [UUID(it.result.id) for it in each]


class TestOneRequest:
    def test_is_answered_with_the_job_that_is_there(self):
        mine = name()
        first = written((tasks.note, "x"), names=[mine])
        assert written((tasks.note, "x"), names=[mine]) == first
        assert states() == {first[0]: "ready"}

    def test_tells_whether_it_was_the_first(self):
        mine = name()
        told = [write_once("default", [prepared(tasks.note)], [mine]) for _ in range(2)]
        assert told == [1, 0]

    def test_without_a_name_is_a_new_one_each_time(self):
        first, second = (written((tasks.note, "x"), names=[None]) for _ in range(2))
        assert first != second
        assert not NamedRequest.objects.exists()

    def test_of_another_asker_is_another_one(self):
        request_id = uuid4()
        names = [Name.of(asker, request_id, "") for asker in ("ada", "bob")]
        first, second = (written((tasks.note,), names=[each]) for each in names)
        assert first != second

    def test_is_remembered_when_its_job_is_gone(self):
        mine = name()
        (first,) = written((tasks.note, "x"), names=[mine])
        discard("default", first)
        assert written((tasks.note, "x"), names=[mine]) == [first]
        assert not Job.objects.exists()

    def test_is_forgotten_after_a_day(self):
        mine = name()
        (first,) = written((tasks.note,), names=[mine])
        row = NamedRequest.objects.get()
        assert row.expires_at == Job.objects.get().enqueued_at + REMEMBERED
        NamedRequest.objects.update(expires_at=timezone.now() - PAST)
        (second,) = written((tasks.note,), names=[mine])
        assert {*states()} == {first, second}
        assert NamedRequest.objects.get().job_id == second

    @pytest.mark.parametrize("is_gone", [False, True])
    def test_for_something_else_is_refused(self, is_gone):
        mine = name("one thing")
        (first,) = written((tasks.note, "x"), names=[mine])
        if is_gone:
            discard("default", first)
        other = mine._replace(sent=name("another").sent)
        with pytest.raises(RequestReusedError, match="request_id") as refusal:
            written((unique_tasks.once, "y"), (tasks.note,), names=[other, None])
        assert refusal.value.places == (0,)
        assert {*states()} == ({first} - {first if is_gone else None})

    def test_that_was_refused_may_come_again(self):
        unique_tasks.once_or_error.enqueue(1)
        mine = name()
        with pytest.raises(DuplicateTaskError):
            written((unique_tasks.once_or_error, 1), names=[mine])
        assert not NamedRequest.objects.exists()
        discard("default", Job.objects.get().pk)
        (job_id,) = written((unique_tasks.once_or_error, 1), names=[mine])
        assert states() == {job_id: "ready"}

    @pytest.mark.django_db(transaction=True)
    def test_for_a_limited_task_gets_a_slot_with_the_commit(self):
        mine = name()
        for _ in range(2):
            (job_id,) = written((limited_tasks.one_by_account, "x"), names=[mine])
        assert states() == {job_id: "ready"}

    @pytest.mark.django_db(transaction=True)
    def test_is_announced_when_its_job_is_certain(self):
        """Also of tasks that are announced before others commit: that is not ours."""
        heard = []

        def hear(task_result, **kwargs):
            heard.append(transaction.get_connection().in_atomic_block)

        task = tasks.note.using(enqueue_on_commit=False)
        signals.task_enqueued.connect(hear)
        try:
            written((task,), names=[name()])
            unique_tasks.once_or_error.enqueue(1)
            with pytest.raises(DuplicateTaskError):
                written(
                    (task,), (unique_tasks.once_or_error, 1), names=[name(), name()]
                )
        finally:
            signals.task_enqueued.disconnect(hear)
        assert heard == [False, False]


class TestUniqueTasks:
    def test_lead_to_the_job_that_was_there_before(self):
        result, mine = unique_tasks.once.enqueue(1), name()
        first = written((unique_tasks.once, 1), names=[mine])
        assert first == [UUID(result.id)]
        discard("default", result.id)
        assert written((unique_tasks.once, 1), names=[mine]) == first
        assert not Job.objects.exists()

    def test_whose_call_is_refused_are_told_which(self):
        unique_tasks.once_or_error.enqueue(1)
        each = [prepared(tasks.note), prepared(unique_tasks.once_or_error, 1)]
        with pytest.raises(DuplicateTaskError) as refusal:
            write_once("default", each, [None, None])
        assert refusal.value.refused_id == str(each[1].job.id)

    @pytest.mark.django_db(transaction=True)
    def test_are_not_answered_with_what_a_lost_attempt_has_met(self, monkeypatch):
        """The other one may be over when the transaction is tried again."""
        holder = unique_tasks.once.enqueue(1)
        follow, lost = once._lead_to_answer, []

        def lose(*args):
            if not lost:
                lost.append(args)
                raise OperationalError(1213, "Deadlock")
            follow(*args)

        def end(*args):
            if lost and not ended:
                ended.append(discard("default", holder.id))
            return known(*args)

        known, ended = once._known, []
        monkeypatch.setattr(once, "_lead_to_answer", lose)
        monkeypatch.setattr(once, "_known", end)
        (answer,) = written((unique_tasks.once, 1), names=[name()])
        assert ended == [True]
        assert states() == {answer: "ready"}
        assert NamedRequest.objects.get().job_id == answer


class TestMany:
    def test_of_which_some_were_there_before(self):
        names = [name() for _ in range(3)]
        (second,) = written((tasks.note, 2), names=names[1:2])
        calls = [(tasks.note, n) for n in (1, 2, 3)]
        found = written(*calls, names=names)
        assert found[1] == second
        assert {*found} == {*states()}
        assert len({*found}) == 3

    def test_named_or_not(self):
        mine = name()
        calls = [(tasks.note, 1), (tasks.note, 1)]
        first, again = (written(*calls, names=[mine, None]) for _ in range(2))
        assert first[0] == again[0]
        assert len({*first, *again}) == 3

    @pytest.mark.parametrize("is_named", [False, True])
    def test_are_written_together_or_not_at_all(self, is_named):
        """Also those of another alias of the same database."""
        there, elsewhere = prepared(tasks.note, "x"), prepared(tasks.note, "x")
        apart = replace(elsewhere.destination, alias="another")
        elsewhere = replace(elsewhere, destination=apart)
        elsewhere.job.id = there.job.id
        names = [name() if is_named else None for _ in range(2)]
        with pytest.raises(EnqueueError):
            write_once("default", [there, elsewhere], names)
        assert not Job.objects.exists()
        assert not NamedRequest.objects.exists()

    def test_take_few_statements(self):
        calls = [(tasks.note, n) for n in range(100)]
        names = [name() for _ in calls]
        with statements() as found:
            written(*calls, names=names)
        assert len(found) <= 6
        with statements() as found:
            written(*calls, names=names)
        assert len(found) <= 4


@pytest.mark.django_db(transaction=True)
class TestAtTheSameTime:
    def test_one_is_carried_out(self):
        for _ in range(5):
            mine = name()
            ask = [lambda mine=mine: written((tasks.note, "x"), names=[mine])] * 4
            found = in_threads(ask)
            assert len({each for (each,) in found}) == 1
        assert Job.objects.count() == 5

    @pytest.mark.usefixtures("row_locks")
    def test_the_second_waits_for_the_first_and_is_answered_alike(self):
        """Else it would be told that there is nothing, or be written twice."""
        mine = name()
        with uncommitted(written, (tasks.note, "x"), names=[mine]) as first:
            second = started(written, (tasks.note, "x"), names=[mine])
        assert second.result(30) == first
        assert Job.objects.count() == 1

    @pytest.mark.usefixtures("row_locks")
    def test_when_the_first_comes_to_nothing_the_second_is_carried_out(self):
        mine = name()

        def give_up():
            written((tasks.note, "x"), names=[mine])
            transaction.set_rollback(True)

        with uncommitted(give_up):
            second = started(written, (tasks.note, "x"), names=[mine])
        (job_id,) = second.result(30)
        assert states() == {job_id: "ready"}

    def test_those_in_another_order_do_not_wait_for_each_other(self):
        names = [name() for _ in range(20)]
        calls = [(tasks.note, n) for n in range(20)]

        def ask(step):
            found = written(*calls[::step], names=names[::step])
            return found[::step]

        first, second = in_threads([lambda: ask(1), lambda: ask(-1)])
        assert first == second
        assert Job.objects.count() == 20

    def test_a_name_whose_time_is_over_goes_to_one_of_them(self):
        for _ in range(5):
            mine = name()
            written((tasks.note, "old"), names=[mine])
            NamedRequest.objects.update(expires_at=timezone.now() - PAST)
            ask = [lambda mine=mine: written((tasks.note, "new"), names=[mine])] * 3
            assert len({each for (each,) in in_threads(ask)}) == 1
            assert Job.objects.filter(arguments__contains="new").count() == 1
            Job.objects.all().delete()

    def test_unique_calls_that_replace_each_other_are_all_carried_out(self):
        """They lock each other out now and then, of which nobody is told."""

        def until_written(text, mine):
            try:
                written((unique_tasks.latest, "ada", text), names=[mine])
            except EnqueueError as error:
                # Again and again somebody else came first, which is no conflict.
                if error.__cause__ is not None:
                    raise
                until_written(text, mine)

        def ask(n):
            for i in range(8):
                until_written(f"{n}.{i}", name())

        in_threads([lambda n=n: ask(n) for n in range(3)])
        (job,) = Job.objects.all()
        assert job.arguments.endswith('.7"],"kwargs":{}}')
        assert NamedRequest.objects.count() == 24

    def test_a_conflict_while_jobs_are_written_is_tried_again(self, monkeypatch):
        store, tries = type(store_for("default")), []
        insert = store.insert

        def lose(self, jobs):
            tries.append(jobs)
            if len(tries) == 1:
                raise OperationalError(1213, "Deadlock")
            insert(self, jobs)

        monkeypatch.setattr(store, "insert", lose)
        (job_id,) = written((tasks.note,), names=[name()])
        assert len(tries) == 2
        assert states() == {job_id: "ready"}


def test_names_that_come_and_go_are_given_up_at_last(monkeypatch):
    monkeypatch.setattr(once, "ROUNDS", 0)
    with pytest.raises(EnqueueError, match="Try again"):
        written((tasks.note,), names=[name()])


class TestForgetting:
    def test_names_whose_time_is_over(self, monkeypatch):
        monkeypatch.setattr(once, "FEW", 2)
        for _ in range(7):
            written((tasks.note,), names=[name()])
        young = NamedRequest.objects.values_list("pk", flat=True)[:2]
        old = NamedRequest.objects.exclude(pk__in=[*young])
        old.update(expires_at=timezone.now() - PAST)
        assert forget("default") == 5
        assert NamedRequest.objects.count() == 2
        assert Job.objects.count() == 7

    def test_for_a_while_only(self, monkeypatch):
        """Others have work to do meanwhile."""
        monkeypatch.setattr(once, "PATIENCE", 0.0)
        written((tasks.note,), names=[name()])
        NamedRequest.objects.update(expires_at=timezone.now() - PAST)
        assert forget("default") == 0
