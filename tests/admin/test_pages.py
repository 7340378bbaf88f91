"""Every table has its pages: to read, never to write, at a price that does not grow."""

import os
import subprocess
import sys
from datetime import timedelta
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.test import override_settings
from django.urls import reverse

from robust_queue.admin import base, filters
from robust_queue.models import (
    ApiToken,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    Job,
    Process,
    ReadyExecution,
    RecurringTask,
)
from tests.support import rows
from tests.support.rows import MAKERS
from tests.support.statements import statements

MODELS = sorted(MAKERS, key=lambda model: model.__name__)
READ_ONLY = [model for model in MODELS if model not in {RecurringTask, ApiToken}]


def url(model, page="changelist", *args):
    return reverse(f"admin:robust_queue_{model._meta.model_name}_{page}", args=args)


def detail(row):
    return url(type(row), "change", quote(row.pk))


def shown(response):
    assert response.status_code == 200
    return [row.pk for row in response.context["cl"].result_list]


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def test_every_table_is_registered():
    models = set(apps.get_app_config("robust_queue").get_models())
    assert models == set(MAKERS)
    assert models <= set(admin.site._registry)


@pytest.mark.parametrize("model", MODELS)
def test_lists_and_details_are_shown(as_superuser, model):
    row = MAKERS[model]()
    assert row.pk in shown(as_superuser.get(url(model)))
    assert as_superuser.get(detail(row)).status_code == 200
    assert as_superuser.get(url(model, "history", quote(row.pk))).status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_staff_who_may_view_a_table_see_it(as_staff, model):
    row = MAKERS[model]()
    browser = as_staff(f"view_{model._meta.model_name}")
    assert row.pk in shown(browser.get(url(model)))
    assert browser.get(detail(row)).status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_staff_without_permission_see_nothing(as_staff, model):
    row = MAKERS[model]()
    browser = as_staff()
    assert browser.get(url(model)).status_code == 403
    assert browser.get(detail(row)).status_code == 403


@pytest.mark.parametrize("model", READ_ONLY)
def test_nobody_adds_changes_or_deletes(as_superuser, model):
    row = MAKERS[model]()
    before = list(model.objects.values())
    assert as_superuser.get(url(model, "add")).status_code == 403
    assert as_superuser.post(url(model, "add"), {"key": "x"}).status_code == 403
    assert as_superuser.post(detail(row), {"key": "x"}).status_code == 403
    deletion = url(model, "delete", quote(row.pk))
    assert as_superuser.post(deletion, {"post": "yes"}).status_code == 403
    as_superuser.post(
        url(model),
        {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"},
    )
    assert list(model.objects.values()) == before


@pytest.mark.parametrize("model", MODELS)
def test_the_number_of_queries_does_not_depend_on_the_number_of_rows(
    as_superuser, model
):
    as_superuser.get(url(model))  # the session and such are read once
    MAKERS[model]()
    with statements() as for_one:
        assert len(shown(as_superuser.get(url(model)))) >= 1
    for _ in range(19):
        MAKERS[model]()
    with statements() as for_many:
        assert len(shown(as_superuser.get(url(model)))) >= 20
    assert len(for_many) == len(for_one)
    assert len(for_many) <= (12 if model is Job else 7), for_many


@pytest.mark.parametrize("model", MODELS)
def test_a_search_for_nonsense_finds_nothing(as_superuser, model):
    MAKERS[model]()
    if admin.site._registry[model].get_search_fields(None):
        for term in ("nonsense", str(uuid4()), "a b", "'", '"'):
            assert shown(as_superuser.get(url(model), {"q": term})) == []


@pytest.mark.parametrize("model", [Job, ReadyExecution, FailedExecution])
def test_jobs_are_found_by_id_and_by_the_whole_path_of_their_task(as_superuser, model):
    row = MAKERS[model]()
    MAKERS[model]()
    assert shown(as_superuser.get(url(model), {"q": f" {row.pk} "})) == [row.pk]
    assert len(shown(as_superuser.get(url(model), {"q": rows.TASK}))) == 2
    assert shown(as_superuser.get(url(model), {"q": "tests.testapp"})) == []


def test_jobs_are_listed_with_their_state_and_filtered_by_it(as_superuser):
    waiting, broken = rows.ready().job, rows.failed().job
    rows.job()
    page = text(as_superuser.get(url(Job)))
    assert all(f">{state}<" in page for state in ("ready", "failed", "lost"))
    chosen = as_superuser.get(url(Job), {"state": "failed"})
    assert shown(chosen) == [broken.pk]
    assert shown(as_superuser.get(url(Job), {"state": "ready"})) == [waiting.pk]
    assert len(shown(as_superuser.get(url(Job), {"state": "nonsense"}))) == 3


def test_rows_are_filtered_by_queue(as_superuser):
    mail = rows.ready(rows.job(queue_name="mail"))
    rows.ready()
    response = as_superuser.get(url(ReadyExecution), {"queue": "mail"})
    assert shown(response) == [mail.pk]
    assert "?queue=default" in text(response)
    failure = rows.failed(rows.job(queue_name="mail"))
    rows.failed()
    response = as_superuser.get(url(FailedExecution), {"queue": "mail"})
    assert shown(response) == [failure.pk]


def test_failures_are_filtered_by_exception(as_superuser):
    wanted = rows.failed(exception_class="shop.errors.CardRefused")
    rows.failed()
    chosen = {"exception": "shop.errors.CardRefused"}
    response = as_superuser.get(url(FailedExecution), chosen)
    assert shown(response) == [wanted.pk]
    assert "?exception=builtins.ValueError" in text(response)


def test_lists_are_in_the_order_of_an_index(as_superuser):
    jobs = [rows.ready(rows.job(priority=p)).pk for p in (2, 1, 2)]
    order = [jobs[1], jobs[0], jobs[2]]
    assert shown(as_superuser.get(url(ReadyExecution))) == order
    assert shown(as_superuser.get(url(Job))) == [*reversed(jobs)]


def test_lists_count_no_further_than_they_reach(as_superuser, monkeypatch):
    monkeypatch.setattr(base, "REACH", 3)
    for _ in range(5):
        rows.ready()
    response = as_superuser.get(url(ReadyExecution))
    assert response.context["cl"].result_count == 3


def test_lists_leave_the_wide_columns_behind(as_superuser):
    rows.failed(rows.job())
    rows.finished()
    for model in (Job, FailedExecution, FinishedExecution):
        with statements() as sent:
            as_superuser.get(url(model))
        listed = [sql for sql in sent if "LIMIT 100" in sql or "ORDER BY" in sql]
        wide = ("arguments", "traceback", "result", "metadata")
        assert not [sql for sql in listed if any(name in sql for name in wide)]


def test_a_failure_is_readable(as_superuser):
    row = rows.failed(message="refused <b>twice</b>", traceback="Traceback:\n  line 7")
    page = text(as_superuser.get(detail(row)))
    assert 'class="rqueue-text" tabindex="0">Traceback:\n  line 7</pre>' in page
    assert "refused &lt;b&gt;twice&lt;/b&gt;" in page
    assert "&quot;to&quot;: &quot;ada@example.org&quot;" in page
    assert detail(row.job) in page


def test_a_job_tells_where_it_stands_and_what_went_before(as_superuser):
    row = rows.finished()
    earlier = rows.attempt(row.job)
    page = text(as_superuser.get(detail(row.job)))
    assert detail(row) in page
    assert detail(earlier) in page
    assert "builtins.ValueError" in page


def test_a_claim_names_its_worker_even_if_that_is_gone(as_superuser):
    worker = rows.process()
    row = rows.claimed(by=worker)
    assert worker.name in text(as_superuser.get(url(ClaimedExecution)))
    assert detail(worker) in text(as_superuser.get(detail(row)))
    worker.delete()
    assert str(row.process_id) in text(as_superuser.get(url(ClaimedExecution)))


def test_processes_are_alive_or_silent(as_superuser):
    rows.process()
    silent = rows.process(silent_for=timedelta(hours=1))
    page = text(as_superuser.get(url(Process)))
    assert page.count('alt="True"') == page.count('alt="False"') == 1
    assert 'alt="False"' in text(as_superuser.get(detail(silent)))


class ToTheOther:
    """Keeps the queue in the second database."""

    def db_for_read(self, model, **hints):
        return "other" if model._meta.app_label == "robust_queue" else None

    db_for_write = db_for_read


@pytest.mark.django_db(databases=["default", "other"])
def test_the_pages_follow_the_router(as_superuser):
    here = rows.ready()
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.ToTheOther"]):
        there = rows.ready()
        assert shown(as_superuser.get(url(Job))) == [there.pk]
        assert as_superuser.get(detail(there)).status_code == 200
    assert shown(as_superuser.get(url(Job))) == [here.pk]


def test_the_latest_failures_tell_which_exceptions_there_are(as_superuser, monkeypatch):
    monkeypatch.setattr(filters, "LOOKED_AT", 1)
    rows.failed(exception_class="shop.Old")
    rows.failed(exception_class="shop.New")
    page = text(as_superuser.get(url(FailedExecution)))
    assert "?exception=shop.New" in page
    assert "?exception=shop.Old" not in page


WITHOUT_ADMIN = """
from tests.settings import *

INSTALLED_APPS = [app for app in INSTALLED_APPS if app not in {
    "django.contrib.admin", "django.contrib.messages", "django.contrib.sessions"}]
MIDDLEWARE, TEMPLATES, ROOT_URLCONF = [], [], None
"""


def test_the_queue_works_without_the_admin(tmp_path):
    (tmp_path / "without_admin.py").write_text(WITHOUT_ADMIN)
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    script = (
        "import django, sys; django.setup();"
        "from django.core.management import call_command; call_command('check');"
        "sys.exit('robust_queue.admin' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={
            **os.environ,
            "PYTHONPATH": paths,
            "DJANGO_SETTINGS_MODULE": "without_admin",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_ready_job_tells_whose_it_is(as_superuser):
    row = rows.ready(partition_key="tenant 42")
    assert "tenant 42" in as_superuser.get(url(ReadyExecution)).content.decode()
    assert "tenant 42" in as_superuser.get(detail(row)).content.decode()
