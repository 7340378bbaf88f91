"""A queue with a database of its own, and reading where was written."""

import pytest
from django.apps import apps
from django.db import router

from robust_queue.compat import task_backends
from robust_queue.models import Job
from robust_queue.router import RobustQueueRouter, queue_databases
from tests.testapp.models import Customer
from tests.testapp.tasks import elsewhere, note

BACKEND = "robust_queue.backend.RobustQueueBackend"


class ReplicaRouter:
    """Reads from a replica, which has not caught up yet."""

    def db_for_read(self, model, **hints):
        return "other"

    def db_for_write(self, model, **hints):
        return "default"

    def allow_relation(self, *args, **hints):
        return True


@pytest.fixture
def own_database(settings):
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"DATABASE": "other"}}
    }
    settings.DATABASE_ROUTERS = ["robust_queue.router.RobustQueueRouter"]


@pytest.mark.usefixtures("own_database")
class TestAQueueDatabase:
    def test_models_go_there(self):
        assert router.db_for_read(Job) == router.db_for_write(Job) == "other"
        assert queue_databases() == ["other"]

    def test_and_those_of_other_apps_do_not(self):
        assert router.db_for_write(Customer) == "default"
        assert RobustQueueRouter().db_for_read(Customer) is None

    def test_tables_are_made_only_there(self):
        assert router.allow_migrate_model("other", Job) is True
        assert router.allow_migrate_model("default", Job) is False
        assert router.allow_migrate_model("default", Customer) is True
        assert router.allow_migrate_model("other", Customer) is True

    @pytest.mark.django_db(databases=["default", "other"])
    def test_jobs_are_written_and_read_there(self):
        result = note.enqueue(1)
        assert Job.objects.get().pk.hex == result.id.replace("-", "")
        assert not Job.objects.using("default").exists()
        assert note.get_result(result.id) == result


def test_an_alias_that_names_no_database_does_not_follow_the_first(settings):
    settings.TASKS = {
        "imports": {"BACKEND": BACKEND, "OPTIONS": {"DATABASE": "other"}},
        "default": {"BACKEND": BACKEND},
    }
    settings.DATABASE_ROUTERS = ["robust_queue.router.RobustQueueRouter"]
    assert task_backends["default"].database == "default"
    assert task_backends["imports"].database == "other"
    assert queue_databases() == ["other", "default"]


@pytest.mark.django_db(databases=["default", "other"])
class TestSeveralAliases:
    def test_each_has_its_own_database(self):
        here, there = note.enqueue(), elsewhere.enqueue()
        assert [str(j.pk) for j in Job.objects.using("default")] == [here.id]
        assert [str(j.pk) for j in Job.objects.using("other")] == [there.id]

    def test_databases_in_the_order_of_the_aliases(self):
        assert queue_databases() == ["default", "other"]

    def test_a_row_stays_where_it_came_from(self):
        elsewhere.enqueue()
        job = Job.objects.using("other").get()
        found = RobustQueueRouter().db_for_write(Job, instance=job)
        assert found == "other"

    def test_relations_between_queue_models_are_fine(self):
        elsewhere.enqueue()
        job = Job.objects.using("other").with_state().get()
        assert RobustQueueRouter().allow_relation(job, job.ready_execution) is True
        customer = Customer(name="Ada")
        assert RobustQueueRouter().allow_relation(job, customer) is None


@pytest.mark.django_db(databases=["default", "other"])
def test_results_are_not_read_from_a_replica(settings):
    settings.DATABASE_ROUTERS = [f"{__name__}.ReplicaRouter"]
    result = note.enqueue(1)
    assert note.get_result(result.id) == result
    assert apps.is_installed("robust_queue")
