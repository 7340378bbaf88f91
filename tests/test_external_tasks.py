"""External tasks: how they are declared and enqueued, and who leaves them alone."""

import json
import pickle
from datetime import timedelta
from inspect import isfunction, signature
from typing import get_type_hints

import pytest
from django.core.checks import run_checks
from django.db import connection

import robust_queue
from robust_queue import (
    Concurrency,
    RateLimit,
    Unique,
    enqueue_all,
    external_task,
    limits_concurrency,
    recurring,
    registry,
    schedule_recurring,
    task,
)
from robust_queue.compat import InvalidTask
from robust_queue.configuration import WorkerConfiguration
from robust_queue.exceptions import ExternalTaskError
from robust_queue.external import ExternalTask
from robust_queue.lifecycle import recover
from robust_queue.lifecycle.claim import Claiming, claim
from robust_queue.lifecycle.perform import perform
from robust_queue.lifecycle.policy import policy_for
from robust_queue.lifecycle.service import queue_page
from robust_queue.management.banner import advice
from robust_queue.models import (
    BlockedExecution,
    FailedExecution,
    Job,
    ReadyExecution,
    ScheduledExecution,
)
from robust_queue.models.processes import EXTERNAL
from robust_queue.processes.emptiness import Emptiness
from robust_queue.processes.listener import Listener
from robust_queue.processes.turns import queues_left_out, shared_queues
from robust_queue.recurrence import declared
from robust_queue.stores.news import News
from robust_queue.testing import drain
from tests.support import rows
from tests.support.external import forgetful
from tests.support.in_process import in_process
from tests.support.processes import a_process
from tests.testapp import backported
from tests.testapp.limited_tasks import write_to_account
from tests.testapp.tasks import note

__all__ = ["forgetful"]

pytestmark = pytest.mark.usefixtures("forgetful")
BACKEND = "robust_queue.backend.RobustQueueBackend"
in_database = pytest.mark.django_db(transaction=True)


def render(order: int, *, paper: "str" = "A4") -> bytes:
    """Render an order."""


@pytest.fixture
def render_pdf(forgetful):
    return external_task("render-pdf", queue_name="pdf", signature=render)


class TestDeclaration:
    def test_it_goes_by_its_name(self, render_pdf):
        assert type(render_pdf) is ExternalTask
        assert render_pdf.module_path == render_pdf.name == "render-pdf"
        assert render_pdf.queue_name == "pdf"
        assert registry.resolve("render-pdf") is render_pdf

    def test_its_function_has_the_parameters_and_annotations(self, render_pdf):
        assert isfunction(render_pdf.func)
        assert str(signature(render_pdf.func)) == str(signature(render))
        expected = {"order": int, "paper": str, "return": bytes}
        assert get_type_hints(render_pdf.func) == expected
        assert render_pdf.func.__doc__ == "Render an order."

    def test_each_has_a_function_of_its_own(self, render_pdf):
        other = external_task("other", queue_name="pdf")
        assert other.func is not render_pdf.func

    def test_a_coroutine_will_do(self):
        async def fetch(url): ...

        made = external_task("fetch", queue_name="web", signature=fetch)
        with pytest.raises(ExternalTaskError):
            made.call("https://example.org")

    @pytest.mark.parametrize(
        "name", ["x", "a" * 255, "Render_2:pdf/shop.tasks-v1", "shop.tasks.nothing"]
    )
    def test_names(self, name):
        assert external_task(name, queue_name="pdf").module_path == name

    @pytest.mark.parametrize(
        "name", ["", "a" * 256, "a b", "ä", "a\n", "<locals>", "a*", None, 7]
    )
    def test_names_that_are_refused(self, name):
        with pytest.raises(InvalidTask, match="must have 1 to 255 characters"):
            external_task(name, queue_name="pdf")

    @pytest.mark.parametrize("queue", ["", None, 7])
    def test_a_queue_is_needed(self, queue):
        with pytest.raises(InvalidTask, match="queue_name must be the name of a queue"):
            external_task("x", queue_name=queue)
        with pytest.raises(TypeError, match="queue_name"):
            external_task("x")

    @pytest.mark.parametrize("given", [7, "render", print, len, render.__call__])
    def test_a_signature_is_a_function(self, given):
        with pytest.raises(InvalidTask, match="signature must be a function"):
            external_task("x", queue_name="pdf", signature=given)

    def test_what_is_declared_of_functions_only(self):
        for name in ("isolation", "takes_context", "run_after"):
            with pytest.raises(InvalidTask, match=f"cannot declare {name}"):
                external_task("x", queue_name="pdf", **{name: None})
        with pytest.raises(TypeError, match="unknown keyword 'max_retries'"):
            external_task("x", queue_name="pdf", max_retries=3)
        assert registry.find("x") is None

    def test_policies_are_checked_as_ever(self):
        with pytest.raises(InvalidTask, match="max_attempts must be a whole number"):
            external_task("x", queue_name="pdf", max_attempts=0)

    def test_policies(self):
        made = external_task(
            "x",
            queue_name="pdf",
            max_attempts=4,
            backoff=[1, 2],
            retry_on=OSError,
            timeout=30,
            on_crash="fail",
            concurrency=Concurrency(limit=2),
            unique=Unique(),
            rate_limit=RateLimit("5/s"),
        )
        assert (made.max_attempts, made.on_crash) == (4, "fail")
        assert made.timeout == timedelta(seconds=30)
        more = limits_concurrency(key="one", group="g")(made)
        assert type(more) is ExternalTask
        assert len(registry.resolve("x").concurrency) == 2

    def test_it_travels_between_processes(self, render_pdf):
        varied = render_pdf.using(priority=7)
        assert pickle.loads(pickle.dumps(varied)) == varied  # noqa: S301

    @pytest.mark.parametrize("name", ["tests.testapp.tasks.note", "render-pdf"])
    def test_nobody_else_may_be_called_the_same(self, name, render_pdf):
        render_pdf.func.__module__ = "somewhere.else"
        with pytest.raises(InvalidTask, match=f"Another task is called {name!r}"):
            external_task(name, queue_name="pdf")
        assert registry.resolve("render-pdf") is render_pdf
        assert registry.resolve(note.module_path).func is note.func

    def test_nor_a_function_that_comes_later(self):
        external_task(f"{__name__}.late", queue_name="pdf")
        late.__module__ = __name__
        with pytest.raises(InvalidTask, match="Give the external task a name"):
            task(late)

    def test_nor_like_a_task_of_another_backend(self):
        with pytest.raises(InvalidTask, match="Another task is called"):
            external_task(backported.immediate.module_path, queue_name="pdf")

    def test_its_own_module_may_declare_it_again(self, render_pdf):
        again = external_task("render-pdf", queue_name="print")
        assert registry.resolve("render-pdf") is again
        assert registry.external_queues() == {"print"}

    def test_nobody_here_can_call_it(self, render_pdf):
        with pytest.raises(ExternalTaskError, match="render-pdf is performed by work"):
            render_pdf.call(7)

    def test_it_is_public(self):
        assert robust_queue.external_task is external_task
        assert "external_task" in robust_queue.__all__


def late(): ...


def test_queues_of_external_tasks(render_pdf):
    assert registry.external_queues() == {"pdf"}
    external_task("print", queue_name="paper")
    render_pdf.using(queue_name="elsewhere")
    assert registry.external_queues() == {"pdf", "paper"}


@in_database
class TestEnqueueing:
    def test_it_is_enqueued_like_any_task(self, render_pdf):
        result = render_pdf.using(priority=3).enqueue(7, paper="A5")
        job = Job.objects.get()
        assert (job.task_path, job.queue_name) == ("render-pdf", "pdf")
        found = render_pdf.get_result(result.id)
        assert found.task.module_path == "render-pdf"
        assert (found.args, found.kwargs) == ([7], {"paper": "A5"})

    def test_many_at_once_and_for_later(self, render_pdf):
        later = render_pdf.using(run_after=timedelta(hours=1))
        enqueue_all([render_pdf.bind(1), (render_pdf, (2,)), later.bind(3)])
        assert ReadyExecution.objects.count() == 2
        assert ScheduledExecution.objects.count() == 1

    def test_calls_are_checked_against_the_signature(self, render_pdf):
        for args, kwargs in (((), {}), ((1, 2), {}), ((1,), {"size": 3})):
            with pytest.raises(TypeError, match=r"render-pdf\(\): "):
                render_pdf.enqueue(*args, **kwargs)
        assert not Job.objects.exists()

    def test_without_a_signature_any_arguments_do(self):
        anything = external_task("anything", queue_name="pdf")
        anything.enqueue()
        anything.enqueue(1, 2, three=3)
        assert Job.objects.count() == 2

    def test_not_into_a_queue_that_native_workers_serve(self, render_pdf):
        external_task("other", queue_name="paper").enqueue()
        render_pdf.using(queue_name="paper").enqueue(7)
        with pytest.raises(InvalidTask, match="workers of this project would take"):
            render_pdf.using(queue_name="default").enqueue(7)
        assert set(Job.objects.values_list("queue_name", flat=True)) == {"paper"}

    def test_a_function_may_be_sent_there(self, render_pdf):
        note.using(queue_name="pdf").enqueue()
        assert Job.objects.get().queue_name == "pdf"

    def test_it_recurs(self, render_pdf):
        recurring(schedule="@daily", key="daily pdf", args=[7])(render_pdf)
        assert [it.task for it in declared() if it.key == "daily pdf"] == [render_pdf]
        made = schedule_recurring("pdf", "render-pdf", schedule="@daily", args=[7])
        assert made.task_path == "render-pdf"
        with pytest.raises(TypeError, match="render-pdf"):
            schedule_recurring("pdf too", "render-pdf", schedule="@daily")

    def test_limits_hold(self):
        limit = Concurrency(key="one", limit=1)
        unique = Unique(by="arguments")
        limited = external_task("limited", queue_name="pdf", concurrency=limit)
        first, second = limited.enqueue(), limited.enqueue()
        assert [str(it.pk) for it in BlockedExecution.objects.all()] == [second.id]
        once = external_task("once", queue_name="pdf", unique=unique)
        assert once.enqueue(1).id == once.enqueue(1).id
        assert first.id != second.id


@in_database
class TestInterruptions:
    def interrupted(self, made):
        made.enqueue()
        process = a_process()
        assert claim("default", process_id=process)
        held = recover.claims_of("default", process)
        recover.give_up("default", held, RuntimeError("gone"), worker_id="w")

    def test_an_interrupted_job_runs_again_by_default(self):
        self.interrupted(external_task("x", queue_name="pdf"))
        assert ScheduledExecution.objects.count() == 1
        assert not FailedExecution.objects.exists()

    @pytest.mark.parametrize(
        "policies", [{"on_crash": "fail", "max_attempts": 3}, {"max_attempts": 1}]
    )
    def test_unless_it_says_otherwise(self, policies):
        self.interrupted(external_task("x", queue_name="pdf", **policies))
        assert FailedExecution.objects.count() == 1

    def test_within_three_attempts_where_none_are_declared(self):
        from robust_queue.policies import may_run_again

        external_task("x", queue_name="pdf").enqueue()
        policy = policy_for(Job.objects.get())
        assert [may_run_again(policy, attempts=n) for n in (1, 2, 3)] == [
            True,
            True,
            False,
        ]


@in_database
class TestNativeWorkers:
    @pytest.mark.parametrize("queues", [["*"], ["p*", "*"], ["pdf", "default"]])
    def test_they_never_take_them(self, queues, render_pdf, performed):
        render_pdf.using(priority=50).enqueue(7)
        note.using(queue_name="pdf", priority=50).enqueue("not here")
        note.enqueue("here")
        with in_process(queues=queues) as worker:
            worker.until(lambda: performed)
            worker.drain()
            worker.worker.turn()
            worker.drain()
        assert [args for args, _ in performed] == [("here",)]
        left = ReadyExecution.objects.values_list("queue_name", flat=True)
        assert [*left] == ["pdf", "pdf"]

    def test_who_names_nothing_else_has_nothing_to_do(self, render_pdf):
        render_pdf.enqueue(7)
        facts = {"process_id": a_process(), "queues": ["pdf"], "left_out": ["pdf"]}
        assert not Claiming(**facts, limit=5).is_possible
        with in_process(queues=["pdf"]) as worker:
            worker.worker.turn()
        assert ReadyExecution.objects.count() == 1

    def test_jobs_that_wait_for_the_same_slot_are_not_taken_along(self, performed):
        limit = Concurrency(key="one", limit=1, group="shared")
        outside = external_task("outside", queue_name="pdf", concurrency=limit)
        inside = limits_concurrency(key="one", to=1, group="shared")(note)
        for label in ("first", "second", "third"):
            inside.enqueue(label)
            outside.enqueue()
        with in_process() as worker:
            worker.until(lambda: performed)
            worker.drain()
            for _ in range(5):
                worker.worker.turn()
        assert [args for args, _ in performed] == [("first",)]
        (next_one,) = ReadyExecution.objects.all()
        assert next_one.queue_name == "pdf"
        assert not FailedExecution.objects.exists()

    @pytest.mark.parametrize(
        ("queues", "left_out"), [(["mail"], ()), (["*"], ("pdf",))]
    )
    def test_go_on_where_they_were_as_ever(self, render_pdf, queues, left_out):
        """What is left out changes nothing about the order of all the rest."""
        with in_process(queues=queues) as worker:
            assert worker.worker._left_out == left_out
            can_start_anywhere = connection.vendor == "postgresql"
            assert worker.worker._progress._is_followed is can_start_anywhere

    def test_a_tuned_worker_leaves_them_out_as_well(self, render_pdf):
        render_pdf.enqueue(7)
        with in_process(queues=["mail"]) as worker:
            worker.worker._go_on_with(WorkerConfiguration(queues=["mail", "p*"]))
            assert worker.worker._left_out == ("pdf",)
            worker.worker.turn()
        assert ReadyExecution.objects.count() == 1

    def test_one_that_got_hold_of_it_says_why_it_cannot(self, render_pdf):
        render_pdf.enqueue(7)
        process_id = a_process()
        (claimed,) = claim("default", process_id=process_id)
        performed = perform(claimed, database="default", worker_id="of yesterday")
        assert performed.error.__class__ is ExternalTaskError

    def test_tests_of_applications_leave_it_where_it_is(self, render_pdf):
        render_pdf.enqueue(7)
        result = note.enqueue("here")
        assert [each.id for each in drain()] == [result.id]
        assert drain("pdf") == []
        assert ReadyExecution.objects.get().queue_name == "pdf"

    def test_who_waits_until_there_is_nothing_left_does_not_wait_for_it(
        self, render_pdf
    ):
        render_pdf.enqueue(7)
        is_empty = Emptiness("default", [WorkerConfiguration()])
        assert [is_empty(), is_empty()] == [False, True]

    def test_operators_are_told_who_is_awaited(self, render_pdf):
        render_pdf.enqueue(7)
        (told,) = advice("default", [WorkerConfiguration()])
        assert told == "Queue 'pdf' has ready jobs, which wait for workers outside."

    def test_its_queue_is_there_before_there_is_any_job(self, render_pdf, settings):
        settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
        facts = json.dumps({"queues": ["pdf", "default"]})
        rows.process(name="a worker of ours")
        outside = rows.process(EXTERNAL, name="outside", metadata=facts)
        note.enqueue("here")
        page = queue_page("default")
        assert page.idle == []
        by_name = {row.status.name: row.served_by for row in page.rows}
        assert [each.id for each in by_name["pdf"]] == [outside.pk]
        # Where there are many only the first are named: who is outside is among them.
        told = [each.name for each in by_name["default"]]
        assert told == ["outside", "a worker of ours"]


def test_what_a_worker_leaves_out(render_pdf, settings):
    external_task("print", queue_name="paper")
    settings.ROBUST_QUEUE = {
        "queues": {name: {"partition_by": "order"} for name in ("pdf", "orders")}
    }
    everything = WorkerConfiguration()
    assert queues_left_out(everything) == ("paper", "pdf")
    assert queues_left_out(WorkerConfiguration(queues=["pd*"])) == ("pdf",)
    assert queues_left_out(WorkerConfiguration(queues=["default"])) == ()
    assert shared_queues("default", everything) == ["orders"]


def test_news_of_them_is_for_others():
    listener = Listener(
        WorkerConfiguration(),
        left_out=("pdf",),
        database="default",
        on_news=len,
    )
    assert not listener._is_for_us(News(queues=("pdf",)))
    assert listener._is_for_us(News(queues=("pdf", "mail")))
    assert listener._is_for_us(News(queues=()))
    listener.serve(WorkerConfiguration(queues=["p*"]), left_out=())
    assert listener._is_for_us(News(queues=("pdf",)))


class TestChecks:
    def found(self, *numbers):
        known = {f"robust_queue.{number}" for number in numbers}
        return [each for each in run_checks() if each.id in known]

    def test_nothing_is_said_where_nobody_else_is_there(self, render_pdf):
        assert self.found("E012", "W011") == []

    def test_a_function_in_such_a_queue(self, render_pdf):
        limited = write_to_account.using()
        external_task("x", queue_name=limited.queue_name)
        paths = [each.msg for each in self.found("E012")]
        assert any(limited.module_path in each for each in paths)
        assert "never take jobs from there" in paths[0]
        assert not any("render-pdf" in each for each in paths)

    def test_a_worker_that_names_such_a_queue(self, render_pdf, settings):
        settings.ROBUST_QUEUE = {"workers": [{"queues": ["*"]}, {"queues": "pdf"}]}
        (message,) = self.found("W011")
        assert message.msg.startswith("ROBUST_QUEUE['workers'][1] names the queue 'pd")

    def test_nobody_here_needs_to_serve_it(self, render_pdf, settings):
        backend = "robust_queue.backend.RobustQueueBackend"
        settings.ROBUST_QUEUE = {"workers": [{"queues": ["default"]}]}
        queues = ["default", "pdf"]
        settings.TASKS = {"default": {"BACKEND": backend, "QUEUES": queues}}
        assert self.found("W004") == []
