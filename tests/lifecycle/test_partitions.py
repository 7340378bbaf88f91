"""Whose job it is, as told when it is enqueued."""

from functools import partial

import pytest
from django.utils import timezone

from robust_queue import enqueue_all, rerun
from robust_queue.compat import InvalidTask
from robust_queue.configuration import Configuration
from robust_queue.flow.partitions import LENGTH, NOBODY
from robust_queue.lifecycle.claim import claim
from robust_queue.lifecycle.dispatch import dispatch_due
from robust_queue.lifecycle.release import release
from robust_queue.models import Job, ReadyExecution
from tests.support.processes import a_process
from tests.testapp.models import Customer
from tests.testapp.tasks import add, attempt_number, note

pytestmark = pytest.mark.django_db

BACKEND = "robust_queue.backend.RobustQueueBackend"


def by_first_argument(task, args, kwargs):
    return args[0]


async def too_late(task, args, kwargs):
    return "never"


@pytest.fixture
def partition_by(settings):
    def set_to(value):
        settings.ROBUST_QUEUE = {"queues": {"imports": {"partition_by": value}}}

    return set_to


def partition_of(task, *args, **kwargs):
    result = task.using(queue_name="imports").enqueue(*args, **kwargs)
    job = Job.objects.get(pk=result.id)
    assert job.ready_execution.partition_key == job.partition_key
    return job.partition_key


class TestByParameter:
    @pytest.fixture(autouse=True)
    def by_b(self, partition_by):
        partition_by("b")

    def test_by_position(self):
        assert partition_of(add, 1, 2) == "2"

    def test_by_name(self):
        assert partition_of(add, 1, b="ada") == "ada"

    def test_not_given_it_is_what_the_task_takes_instead(self):
        assert partition_of(add, 1) == "0"

    def test_among_any_keywords(self):
        assert partition_of(note, 1, b="ada") == "ada"

    @pytest.mark.parametrize("value", [None, "", "   "])
    def test_nobody_has_a_partition_of_its_own(self, value):
        assert partition_of(add, 1, value) == NOBODY

    def test_tasks_that_lack_the_parameter_are_nobodys(self):
        assert partition_of(note, 1, 2) == NOBODY

    def test_the_context_does_not_count(self, partition_by):
        partition_by("extra")
        assert partition_of(attempt_number, 7) == "7"
        partition_by("context")
        assert partition_of(attempt_number, 7) == NOBODY


class TestByFunction:
    def test_a_function(self, partition_by):
        partition_by(lambda task, args, kwargs: (task.name, args[0], kwargs["b"]))
        assert partition_of(add, 1, b=2) == "('add', 1, 2)"

    def test_its_dotted_path(self, partition_by):
        partition_by(f"{__name__}.by_first_argument")
        assert partition_of(add, "ada") == "ada"

    def test_any_callable(self, partition_by):
        partition_by(partial(by_first_argument))
        assert partition_of(add, "ada") == "ada"

    def test_a_model_is_known_by_its_key(self, partition_by):
        partition_by("a")
        ada = Customer.objects.create(name="Ada")
        assert partition_of(add, ada) == f"testapp.Customer:{ada.pk}"

    @pytest.mark.parametrize(
        ("by", "args", "cause"),
        [
            (by_first_argument, (), "IndexError"),
            (f"{__name__}.by_first_argument", (), "IndexError"),
            (f"{__name__}.nowhere", (1,), "ImportError"),
            (f"{__name__}.too_late", (1,), "TypeError"),
        ],
    )
    def test_one_that_raises_is_named_and_nothing_is_stored(
        self, partition_by, by, args, cause
    ):
        partition_by(by)
        with pytest.raises(InvalidTask, match=cause) as refusal:
            note.using(queue_name="imports").enqueue(*args)
        assert "tests.testapp.tasks.note" in str(refusal.value)
        assert f"partition_by={by!r}" in str(refusal.value)
        assert not Job.objects.exists()


class TestHostileTexts:
    @pytest.fixture(autouse=True)
    def by_a(self, partition_by):
        partition_by("a")

    def test_a_long_one_is_like_no_other(self):
        one, other = ("x" * 5000 + end for end in "ab")
        keys = {partition_of(add, one), partition_of(add, other)}
        assert {len(key) for key in keys} == {LENGTH}
        assert len(keys) == 2

    @pytest.mark.parametrize("text", ["a\x00b", "a\nb", "\x7f", "a\u2028b"])
    def test_what_cannot_be_printed_is_stored_all_the_same(self, text):
        assert partition_of(add, text).isprintable()

    def test_spaces_at_the_ends_do_not_count(self):
        assert partition_of(add, " ada ") == "ada"


class TestWhere:
    def test_other_queues_have_no_partitions(self, partition_by):
        partition_by("a")
        add.enqueue("ada")
        assert Job.objects.get().partition_key == ""

    def test_a_queue_may_be_named_and_not_be_partitioned(self, partition_by):
        partition_by(None)
        assert partition_of(add, "ada") == ""

    def test_as_dataclasses(self, settings):
        settings.ROBUST_QUEUE = Configuration.ConfigurationOptions(
            queues={"imports": Configuration.QueueConfiguration(partition_by="a")}
        )
        assert partition_of(add, "ada") == "ada"

    def test_of_one_alias(self, settings):
        options = {"QUEUES": {"imports": {"partition_by": "a"}}}
        alias = {"BACKEND": BACKEND, "OPTIONS": options, "QUEUES": []}
        settings.TASKS = {"default": alias}
        assert partition_of(add, "ada") == "ada"

    def test_many_at_once(self, partition_by):
        partition_by("a")
        enqueue_all(add.using(queue_name="imports").bind(each) for each in "xyx")
        rows = ReadyExecution.objects.order_by("pk")
        assert [each.partition_key for each in rows] == ["x", "y", "x"]


class TestItStays:
    @pytest.fixture(autouse=True)
    def by_a(self, partition_by):
        partition_by("a")

    def partitions(self):
        return list(ReadyExecution.objects.values_list("partition_key", flat=True))

    def test_when_a_job_becomes_due(self):
        later = timezone.now() + timezone.timedelta(hours=1)
        add.using(queue_name="imports", run_after=later).enqueue("ada")
        dispatch_due("default", now=later)
        assert self.partitions() == ["ada"]

    def test_when_a_job_goes_back(self):
        partition_of(add, "ada")
        release("default", claim("default", process_id=a_process()))
        assert self.partitions() == ["ada"]

    def test_who_is_run_again_elsewhere_has_the_partition_of_that_place(self):
        result = add.enqueue("ada")
        rerun(result.id, queue_name="imports")
        assert self.partitions() == ["ada"]
