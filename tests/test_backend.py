"""The backend's promises that Django's own test-suite does not ask for."""

import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings
from django.utils import timezone

import robust_queue
from robust_queue import aenqueue_all, enqueue_all
from robust_queue.backend import RobustQueueBackend
from robust_queue.compat import (
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    signals,
    task_backends,
)
from robust_queue.declaration import Call, RobustTask
from robust_queue.exceptions import PayloadTooLargeError, SerializationError
from robust_queue.models import (
    Attempt,
    FinishedExecution,
    Job,
    Process,
    ReadyExecution,
    ScheduledExecution,
)
from robust_queue.testing import drain
from tests.support.invariants import state_of
from tests.support.processes import a_process
from tests.support.threads import in_thread
from tests.testapp import tasks
from tests.testapp.models import Customer
from tests.testapp.tasks import add, add_async, at_once, echo, explode, mail, note

pytestmark = pytest.mark.django_db

BACKEND = "robust_queue.backend.RobustQueueBackend"


class Weight(IntEnum):
    HEAVY = 1


class Subclass(RobustQueueBackend):
    """A user's own variation."""


class TestEnqueue:
    def test_the_job_is_stored_as_asked_for(self):
        result = mail.enqueue("ada@example.org")
        job = Job.objects.get(pk=result.id)
        assert job.task_path == "tests.testapp.tasks.mail"
        assert (job.queue_name, job.priority, job.backend) == ("mail", 10, "default")
        assert job.enqueued_at == result.enqueued_at
        assert (job.created_at, job.updated_at) == (job.enqueued_at, job.enqueued_at)

    def test_a_moment_or_a_delay(self):
        moment = timezone.now() + timedelta(days=1)
        note.using(run_after=moment).enqueue()
        assert ScheduledExecution.objects.get().scheduled_at == moment
        delayed = note.using(run_after=timedelta(minutes=1)).enqueue()
        waits = delayed.task.run_after - timezone.now()
        assert timedelta(seconds=55) < waits <= timedelta(minutes=1)
        assert state_of(delayed) == "scheduled"

    def test_a_project_without_time_zones(self, settings):
        settings.USE_TZ = False
        settings.TIME_ZONE = "Europe/Madrid"
        moment = datetime(2030, 1, 1, 12)  # noqa: DTZ001
        naive = note.using(run_after=moment).enqueue()
        aware = note.using(run_after=moment.replace(tzinfo=UTC)).enqueue()
        stored = dict(ScheduledExecution.objects.values_list("job_id", "scheduled_at"))
        assert sorted(stored.values()) == [moment, moment + timedelta(hours=1)]
        assert {str(job_id) for job_id in stored} == {naive.id, aware.id}
        result = echo.enqueue(moment)
        (done,) = drain()
        assert (done.id, done.return_value) == (result.id, moment)
        assert echo.get_result(result.id) == done

    @pytest.mark.parametrize(
        "moment",
        [
            datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")),
            datetime.max.replace(tzinfo=ZoneInfo("America/New_York")),
            datetime(1, 12, 31, tzinfo=UTC),
            datetime(9999, 1, 1, tzinfo=UTC),
        ],
    )
    def test_a_moment_that_no_database_can_give_back(self, moment):
        with pytest.raises(InvalidTask, match="out of reach"):
            note.using(run_after=moment).enqueue()
        assert not Job.objects.exists()

    @pytest.mark.parametrize("year", [2, 1900, 9998])
    def test_the_far_past_and_the_far_future(self, year):
        moment = datetime(year, 6, 1, 12, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
        result = note.using(run_after=moment).enqueue()
        assert note.get_result(result.id).task.run_after == moment
        drain()

    @pytest.mark.parametrize("priority", [True, 1.0, Decimal(1), Weight.HEAVY])
    def test_whole_numbers_of_other_types(self, priority):
        enqueue_all([note.bind(), note.using(priority=priority).bind()])
        note.using(priority=priority).enqueue()
        assert sorted(Job.objects.values_list("priority", flat=True)) == [0, 1, 1]

    def test_what_is_already_due_is_ready(self):
        assert (
            state_of(note.using(run_after=timedelta(seconds=-1)).enqueue()) == "ready"
        )

    def test_ids_ascend(self):
        ids = [note.enqueue().id for _ in range(50)]
        assert ids == sorted(ids)

    @pytest.mark.parametrize(
        ("order", "first"), [("smallest_first", -5), ("largest_first", 5)]
    )
    def test_both_priority_orders(self, order, first, settings):
        settings.TASKS = {
            "default": {
                "BACKEND": BACKEND,
                "QUEUES": [],
                "OPTIONS": {"PRIORITY_ORDER": order},
            }
        }
        for priority in (-5, 5, 0):
            echo.using(priority=priority).enqueue(priority)
        assert [r.return_value for r in drain()] == [first, 0, -first]
        assert sorted(Job.objects.values_list("priority", flat=True)) == [-5, 0, 5]

    def test_arguments_survive_unchanged(self):
        customer = Customer.objects.create(name="Ada")
        moment = datetime(2030, 1, 1, tzinfo=UTC)
        value = {"at": moment, "who": customer, 3: ("x", {b"\0"}), "\0": "\ud800"}
        result = echo.enqueue(value)
        assert result.args[0]["at"] == moment.isoformat()
        (done,) = drain()
        assert done.return_value == value
        assert echo.get_result(result.id).return_value == value

    def test_a_decorated_function_is_called_as_its_decorator_says(self):
        tasks.added_to_one.enqueue(2)
        assert [r.return_value for r in drain()] == [3]

    def test_the_bare_backend_accepts_lists_and_dicts(self):
        result = task_backends["default"].enqueue(add, [1], {"b": 2})
        drain()
        result.refresh()
        assert result.return_value == 3


class TestChecksBeforeAnythingIsWritten:
    @pytest.fixture(autouse=True)
    def _nothing_is_stored(self):
        yield
        assert not Job.objects.exists()
        assert not ReadyExecution.objects.exists()

    @pytest.mark.parametrize(
        ("args", "kwargs", "reason"),
        [
            ((), {}, "missing a required argument: 'a'"),
            ((1, 2, 3), {}, "too many positional arguments"),
            ((1,), {"c": 1}, "unexpected keyword argument 'c'"),
            ((1,), {"a": 1}, "multiple values for argument 'a'"),
        ],
    )
    def test_the_call_must_match_the_function(self, args, kwargs, reason):
        with pytest.raises(TypeError, match=f"tasks.add.*{reason}"):
            add.enqueue(*args, **kwargs)

    def test_the_context_is_not_the_callers(self):
        with pytest.raises(TypeError, match="too many positional arguments"):
            tasks.attempt_number.enqueue(1, 2)

    def test_a_queue_that_is_not_there_is_told_where_to_be_named(self, settings):
        queues = {"default": {**settings.TASKS["default"], "QUEUES": ["default"]}}
        with (
            override_settings(TASKS=settings.TASKS | queues),
            pytest.raises(InvalidTask, match=r"TASKS\['default'\]\['QUEUES'\]"),
        ):
            add.using(queue_name="mail")

    @pytest.mark.parametrize("name", ["", " a", "a ", "a*", "a\nb", "a\0", "x" * 129])
    def test_names_of_queues(self, name):
        with pytest.raises(InvalidTask, match="a name has"):
            note.using(queue_name=name).enqueue()

    @pytest.mark.parametrize("value", [float("nan"), object(), lambda: 0])
    def test_values_that_cannot_be_stored(self, value):
        with pytest.raises(SerializationError, match=r"^args\[0\]\['x'\]\[0\]: "):
            note.enqueue({"x": [value]})

    def test_naive_datetimes_are_refused_as_django_demands(self):
        with pytest.raises(SerializationError, match="timezone"):
            note.enqueue(datetime(2030, 1, 1))  # noqa: DTZ001

    def test_an_unsaved_model(self):
        with pytest.raises(SerializationError, match=r"kwargs\['customer'\]"):
            note.enqueue(customer=Customer(name="nobody"))

    def test_too_much(self):
        with pytest.raises(PayloadTooLargeError, match="MAX_ARGUMENTS_SIZE"):
            note.enqueue("x" * (1024 * 1024))

    def test_the_limit_is_an_option(self, settings):
        settings.TASKS = {
            "default": {
                "BACKEND": BACKEND,
                "QUEUES": [],
                "OPTIONS": {"MAX_ARGUMENTS_SIZE": 20},
            }
        }
        with pytest.raises(PayloadTooLargeError, match="more than the 20 allowed"):
            note.enqueue("x" * 20)

    def test_one_bad_call_refuses_all(self):
        with pytest.raises(SerializationError):
            enqueue_all([note.bind(1), note.bind(object())])


class TestEnqueueAll:
    def test_results_come_in_order(self):
        calls = [echo.bind(i) if i % 2 else mail.bind(str(i)) for i in range(10)]
        results = enqueue_all(calls)
        assert [r.args for r in results] == [
            [i] if i % 2 else [str(i)] for i in range(10)
        ]
        assert [r.id for r in results] == sorted(r.id for r in results)

    def test_tuples_will_do(self):
        results = enqueue_all([(note,), (note, [1]), (note, (), {"x": 2}), Call(note)])
        assert [(r.args, r.kwargs) for r in results] == [
            ([], {}),
            ([1], {}),
            ([], {"x": 2}),
            ([], {}),
        ]

    def test_iterators_are_not_used_up(self):
        (result,) = enqueue_all([(add, iter([1, 2]))])
        assert result.args == [1, 2]
        assert [r.return_value for r in drain()] == [3]

    def test_now_and_later_together(self):
        later = note.using(run_after=timedelta(hours=1))
        results = enqueue_all([note.bind(), later.bind(), note.bind()])
        assert [state_of(r) for r in results] == ["ready", "scheduled", "ready"]

    def test_other_backends_are_asked_one_by_one(self):
        mixed = enqueue_all(
            [tasks.immediate.bind(1), note.bind(), tasks.immediate.bind(2)]
        )
        assert [r.status for r in mixed] == ["SUCCESSFUL", "READY", "SUCCESSFUL"]

    def test_nothing(self):
        assert enqueue_all([]) == []

    @pytest.mark.django_db(databases=["default", "other"])
    def test_one_bad_call_refuses_those_of_every_alias(self):
        with pytest.raises(SerializationError):
            enqueue_all([note.bind(1), tasks.elsewhere.bind(object())])
        assert not Job.objects.exists()

    def test_each_is_announced(self):
        told = []

        def remember(sender, task_result, **kwargs):
            told.append(task_result.args)

        signals.task_enqueued.connect(remember)
        enqueue_all(note.bind(i) for i in range(3))
        signals.task_enqueued.disconnect(remember)
        assert told == [[0], [1], [2]]


class TestResults:
    def test_success(self):
        result = add.enqueue(1, b=2)
        assert (result.status, result.attempts) == (TaskResultStatus.READY, 0)
        (done,) = drain()
        result.refresh()
        assert result == done == add.get_result(result.id)
        assert (result.status, result.return_value) == ("SUCCESSFUL", 3)
        assert (result.attempts, len(result.worker_ids)) == (1, 1)
        assert result.enqueued_at <= result.started_at <= result.finished_at
        assert result.last_attempted_at == result.started_at

    def test_failure(self):
        result = explode.enqueue("bang")
        drain()
        result.refresh()
        assert result.status == TaskResultStatus.FAILED
        assert result.errors[0].exception_class is ValueError
        assert result.errors[0].traceback.endswith("ValueError: bang\n")
        with pytest.raises(ValueError, match="Task failed"):
            _ = result.return_value

    def test_a_claimed_job_is_running(self):
        from robust_queue.lifecycle.claim import claim

        result = add.enqueue(1)
        process_id = a_process()
        claim("default", process_id=process_id)
        Process.objects.all().delete()  # even then it is told who it was
        result.refresh()
        assert result.status == TaskResultStatus.RUNNING
        assert (result.attempts, result.worker_ids) == (1, [str(process_id)])
        assert result.started_at is not None

    def test_earlier_attempts_are_told(self):
        result = explode.enqueue()
        now = timezone.now()
        Attempt.objects.create(
            job_id=result.id,
            attempts=1,
            worker_id="first",
            started_at=now - timedelta(minutes=1),
            finished_at=now,
            exception_class="builtins.OSError",
            traceback="OSError\n",
        )
        ReadyExecution.objects.update(attempts=1)
        (done,) = drain()
        for told in (done, explode.get_result(result.id)):
            assert told.attempts == 2
            assert told.worker_ids[0] == "first"
            assert [e.exception_class for e in told.errors] == [OSError, ValueError]
            assert told.started_at == now - timedelta(minutes=1)
            assert told.last_attempted_at > now

    @pytest.mark.parametrize(
        "result_id",
        ["garbage", "", "123", "01a1e32e-3db1-7000-9b65-cb9e7cc96b0d", None, 7],
    )
    def test_unknown_ids(self, result_id):
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(result_id)

    def test_a_removed_task_can_still_be_looked_at(self):
        result = add.enqueue(1)
        Job.objects.update(task_path="shop.gone.task")
        found = task_backends["default"].get_result(result.id)
        assert found.task.module_path == "shop.gone.task"
        assert (found.task.name, found.args) == ("task", [1])

    def test_a_queue_that_is_no_longer_allowed(self, settings):
        result = mail.enqueue("ada@example.org")
        settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default"]}}
        found = task_backends["default"].get_result(result.id)
        assert found.task.queue_name == "mail"
        assert [r.status for r in drain()] == ["SUCCESSFUL"]

    def test_a_damaged_result_is_shown_as_it_is(self):
        result = add.enqueue(1)
        drain()
        FinishedExecution.objects.update(result="{damaged")
        result.refresh()
        assert result.return_value == "{damaged"

    def test_a_result_whose_model_is_gone_is_shown_as_it_was_stored(self):
        customer = Customer.objects.create(name="Ada")
        result = echo.enqueue([1, customer])
        drain()
        customer.delete()
        result.refresh()
        assert result.return_value[0] == 1
        assert result.return_value[1]["model"] == "testapp.customer"

    def test_an_async_result(self):
        result = add_async.enqueue(2, 3)
        drain()
        result.refresh()
        assert result.return_value == 5


@pytest.mark.django_db(transaction=True)
class TestAsync:
    def test_aenqueue_and_aget_result(self):
        async def visit():
            result = await add.aenqueue(1, 2)
            found = await add.aget_result(result.id)
            await found.arefresh()
            return result, found

        result, found = async_to_sync(visit)()
        assert result == found

    def test_aenqueue_all(self):
        results = async_to_sync(aenqueue_all)(add.bind(i) for i in range(3))
        assert [r.args for r in results] == [[0], [1], [2]]
        assert [r.return_value for r in drain()] == [0, 1, 2]


class TestSignals:
    @pytest.fixture
    def heard(self):
        told = []

        def listen(name):
            def remember(sender, task_result, **kwargs):
                told.append((name, sender, task_result.status, sys.exc_info()[0]))

            return remember

        names = ("task_enqueued", "task_started", "task_finished")
        receivers = {name: listen(name) for name in names}
        for name, receiver in receivers.items():
            getattr(signals, name).connect(receiver)
        yield told
        for name, receiver in receivers.items():
            getattr(signals, name).disconnect(receiver)

    def test_of_a_success(self, heard):
        add.enqueue(1)
        drain()
        assert heard == [
            ("task_enqueued", RobustQueueBackend, "READY", None),
            ("task_started", RobustQueueBackend, "RUNNING", None),
            ("task_finished", RobustQueueBackend, "SUCCESSFUL", None),
        ]

    def test_of_a_failure_with_the_exception_in_flight(self, heard):
        explode.enqueue()
        drain()
        assert heard[-1] == ("task_finished", RobustQueueBackend, "FAILED", ValueError)

    def test_when_it_is_told_it_is_stored(self):
        found = []

        def look(sender, task_result, **kwargs):
            found.append(add.get_result(task_result.id).status)

        signals.task_finished.connect(look)
        add.enqueue(1)
        drain()
        signals.task_finished.disconnect(look)
        assert found == ["SUCCESSFUL"]

    def test_a_failing_receiver_harms_nothing(self, caplog):
        def fail(**kwargs):
            raise RuntimeError("receiver")

        every = [signals.task_enqueued, signals.task_started, signals.task_finished]
        for signal in every:
            signal.connect(fail)
        try:
            result = add.enqueue(1, 1)
            drain()
        finally:
            for signal in every:
                signal.disconnect(fail)
        result.refresh()
        assert result.return_value == 2
        assert "receiver" in caplog.text

    def test_the_sender_is_the_subclass(self, heard, settings):
        settings.TASKS = {"default": {"BACKEND": f"{__name__}.Subclass", "QUEUES": []}}
        add.enqueue(1)
        drain()
        assert {sender for _, sender, _, _ in heard} == {Subclass}

    def test_an_alias_that_was_removed(self, heard, settings):
        add.enqueue(1)
        settings.TASKS = {"new": {"BACKEND": BACKEND, "QUEUES": []}}
        assert [r.status for r in drain()] == ["SUCCESSFUL"]
        assert heard[-1][1] is BaseTaskBackend


class TestDeclaring:
    def test_unknown_keywords_are_refused(self):
        with pytest.raises(TypeError, match="Did you mean 'enqueue_on_commit'"):
            robust_queue.task(enqueue_on_comit=True)
        with pytest.raises(TypeError, match="Known are: priority"):
            robust_queue.task(zzz=1)

    def test_a_moment_belongs_to_a_call(self):
        with pytest.raises(TypeError, match="run_after cannot be"):
            robust_queue.task(run_after=timezone.now())

    def test_policies_are_inert_under_another_backend(self):
        assert isinstance(tasks.immediate, RobustTask)
        result = tasks.immediate.using(enqueue_on_commit=False).enqueue(5)
        assert result.return_value == 5

    def test_policies_are_dropped_under_a_backend_with_a_class_of_its_own(
        self, settings
    ):
        settings.TASKS = {"default": {"BACKEND": f"{__name__}.Stubborn"}}
        declared = robust_queue.task(enqueue_on_commit=True)(add.func)
        assert type(declared) is StubbornTask

    def test_one_function_with_and_without_context_is_refused(self):
        with pytest.raises(InvalidTask, match="declared twice"):
            robust_queue.task(takes_context=True)(tasks.context_or_not.func)

    def test_variations_keep_their_policies(self):
        assert at_once.using(priority=3).enqueue_on_commit is False
        assert note.using(enqueue_on_commit=True).using(priority=1).enqueue_on_commit

    def test_djangos_own_decorator(self):
        from tests.settings import TASKS_PACKAGE

        framework = __import__(TASKS_PACKAGE, fromlist=["task"])
        assert type(framework.task(queue_name="x")(note.func)) is RobustTask

    def test_one_task_at_a_time_may_move(self, settings):
        """A task declared on another backend runs here when it is sent here."""
        result = tasks.immediate.using(backend="default").enqueue(9)
        assert [r.return_value for r in drain()] == [9]
        assert tasks.immediate.using(backend="default").get_result(result.id)

    def test_instances_keep_no_state(self):
        backend = task_backends["default"]
        before = dict(vars(backend))
        note.enqueue()
        drain()
        assert vars(backend) == before
        assert in_thread(lambda: id(task_backends["default"])) != id(backend)

    def test_the_flags_are_true_to_the_facts(self):
        backend = task_backends["default"]
        assert backend.supports_defer
        assert backend.supports_async_task
        assert backend.supports_get_result
        assert backend.supports_priority

    def test_subclasses_work(self, settings):
        settings.TASKS = {"default": {"BACKEND": f"{__name__}.Subclass", "QUEUES": []}}
        add.enqueue(1, 2)
        assert [r.return_value for r in drain()] == [3]

    def test_a_retired_option_is_named(self):
        tasks_setting = {"default": {"BACKEND": BACKEND, "OPTIONS": {"DATABSE": "x"}}}
        with (
            override_settings(TASKS=tasks_setting),
            pytest.raises(Exception, match=r"OPTIONS'\]\['DATABSE'\]"),
        ):
            note.enqueue()


def _stubborn_task():
    from dataclasses import dataclass

    from robust_queue.compat import Task

    @dataclass(frozen=True, slots=True, kw_only=True)
    class StubbornTask(Task):
        pass

    return StubbornTask


StubbornTask = _stubborn_task()


class Stubborn(BaseTaskBackend):
    """A backend that insists on its own class of tasks."""

    task_class = StubbornTask

    def enqueue(self, task, args, kwargs):
        raise NotImplementedError


def test_a_task_in_an_apps_init_imports(tmp_path):
    """Backends are made while apps load: no model may be imported by then."""
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "__init__.py").write_text(
        "from robust_queue import task\n\n@task\ndef hello():\n    return 1\n"
    )
    script = f"""
        import sys
        sys.path[:0] = [{str(tmp_path)!r}]
        import django
        from django.conf import settings
        settings.configure(
            INSTALLED_APPS=["early", "robust_queue"],
            DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3"}}}},
            TASKS={{"default": {{"BACKEND": "{BACKEND}"}}}},
        )
        django.setup()
        import early
        print(early.hello.module_path)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "early.hello", done.stderr
