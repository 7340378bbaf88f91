"""Jobs are filtered by what people know about them."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from robust_queue.admin import filter_choices, jobs_list
from robust_queue.lifecycle import search_conditions
from tests.support import rows

LIST = reverse("admin:robust_queue_job_changelist")


@pytest.fixture
def listed(as_superuser):
    def listed(**asked):
        response = as_superuser.get(LIST, asked)
        assert response.status_code == 200
        return [row.pk for row in response.context["cl"].result_list]

    return listed


@pytest.fixture
def page(as_superuser):
    def page(**asked):
        return as_superuser.get(LIST, asked).content.decode()

    return page


@pytest.mark.parametrize(
    ("asked", "column"),
    [
        ({"queue": "mail"}, {"queue_name": "mail"}),
        ({"task": "shop.tasks.pay"}, {"task_path": "shop.tasks.pay"}),
        ({"priority": "-7"}, {"priority": -7}),
        ({"key": "account-7"}, {"concurrency_key": "account-7"}),
    ],
)
def test_by_what_a_job_was_enqueued_with(listed, asked, column):
    wanted = rows.ready(rows.job(**column)).pk
    rows.ready()
    assert listed(**asked) == [wanted]
    assert listed(state="ready", **asked) == [wanted]
    assert listed(state="failed", **asked) == []


@pytest.mark.parametrize("keys", ["a\nb", "b\nc", "a\nb\nc"])
def test_by_one_of_several_keys(listed, keys):
    wanted = rows.ready(rows.job(concurrency_key=keys)).pk
    rows.ready(rows.job(concurrency_key="a\nbb\ncb"))
    assert listed(key="b") == [wanted]


def test_by_what_was_raised(listed):
    wanted = rows.failed(exception_class="shop.CardRefused").pk
    rows.failed()
    rows.ready()
    assert listed(error="shop.CardRefused") == [wanted]
    assert listed(error="shop.CardRefused", state="ready") == []


def test_by_worker_alive_or_not(listed):
    worker = rows.process()
    running = rows.claimed(by=worker).pk
    failed = rows.failed(rows.job())
    done = rows.finished(rows.job())
    for row in (failed, done):
        row.worker_id = worker.name
        row.save()
    rows.finished()
    rows.claimed()
    assert listed(worker=worker.name) == [done.pk, failed.pk, running]
    assert listed(worker=str(worker.pk)) == [running]


def test_by_recurring_task(listed, monkeypatch):
    now = timezone.now()
    jobs = [rows.ready().pk for _ in range(3)]
    for ago, job in zip((3, 2, 1), jobs, strict=True):
        run_at = now - timedelta(minutes=ago)
        rows.recurring_execution(task_key="nightly", job_id=job, run_at=run_at)
    rows.recurring_execution(task_key="nightly", job_id=None, run_at=now)
    rows.ready()
    assert listed(recurring="nightly") == jobs[::-1]
    monkeypatch.setattr(search_conditions, "FEW_RUNS", 2)
    assert listed(recurring="nightly") == jobs[::-1]


def test_by_the_day_of_the_enqueue(listed):
    today = timezone.localdate()
    yesterday, tomorrow = today - timedelta(days=1), today + timedelta(days=1)
    job = rows.ready().pk
    assert listed(enqueued_from=today, enqueued_until=today) == [job]
    assert listed(enqueued_until=yesterday) == []
    assert listed(enqueued_from=tomorrow) == []
    assert listed(enqueued_from=today, state="ready") == [job]


def test_by_the_day_of_the_end(listed):
    today = timezone.localdate()
    yesterday, tomorrow = today - timedelta(days=1), today + timedelta(days=1)
    jobs = [rows.failed().pk, rows.finished().pk][::-1]
    rows.ready()
    assert listed(finished_from=today) == jobs
    assert listed(finished_from=today, finished_until=today) == jobs
    assert listed(finished_until=yesterday) == []
    assert listed(finished_from=tomorrow) == []


def test_what_makes_no_sense_is_told_and_passed_over(listed, page):
    job = rows.ready().pk
    for asked in ({"priority": "99999"}, {"enqueued_from": "soon"}, {"state": "odd"}):
        assert listed(**asked) == [job]
    assert "errorlist" in page(priority="99999")


def test_empty_fields_ask_for_nothing(listed, page):
    job = rows.ready().pk
    blank = {"queue": "", "priority": "", "enqueued_from": "", "state": "ready"}
    assert listed(**blank) == [job]
    assert 'href="?state=failed"' in page(**blank)


def test_the_form_remembers_what_it_was_asked(page):
    found = page(queue='m"il', q="needle", state="ready")
    assert 'value="m&quot;il"' in found
    assert '<input type="hidden" name="q" value="needle">' in found
    assert 'name="state" value="ready"' in found


def test_what_there_is_to_choose_from_is_proposed(page, monkeypatch):
    monkeypatch.setattr(filter_choices, "LOOKED_AT", 1)
    rows.failed(rows.job(task_path="shop.tasks.old"), exception_class="shop.Old")
    rows.ready(rows.job(queue_name="mail", task_path="shop.tasks.new"))
    rows.failed(rows.job(task_path="shop.tasks.newest"), exception_class="shop.New")
    worker, recurring = rows.process(), rows.recurring_task()
    rows.process("Dispatcher", name="dispatcher-7")
    found = page()
    for value in ("mail", "shop.tasks.newest", rows.TASK, "shop.New"):
        assert f'<option value="{value}">' in found
    for value in (worker.name, recurring.key):
        assert f'<option value="{value}">' in found
    for value in ("shop.tasks.old", "shop.Old", "dispatcher-7"):
        assert f'<option value="{value}">' not in found


def test_what_no_index_finds_is_looked_for_in_a_stretch_of_its_state(
    listed, page, monkeypatch
):
    monkeypatch.setattr(jobs_list, "STRETCH", 2)
    wanted = rows.failed(exception_class="shop.CardRefused").pk
    rows.failed()
    for _ in range(5):
        rows.ready()
    assert listed(error="shop.CardRefused") == [wanted]
    rows.failed()
    assert listed(error="shop.CardRefused") == []
    assert "Looked through 2 jobs" in page(error="shop.CardRefused")
    assert "2 jobs per page" not in page(state="ready")
