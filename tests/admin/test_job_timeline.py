"""The page of a job tells what has become of it so far."""

from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils import timezone

from robust_queue.admin import job_timeline
from tests.support import rows


def url(row):
    name = f"admin:robust_queue_{row._meta.model_name}_change"
    return reverse(name, args=[quote(row.pk)])


@pytest.fixture
def page(as_superuser):
    def page(job):
        response = as_superuser.get(url(job))
        assert response.status_code == 200
        return response.content.decode()

    return page


def steps(page):
    """The items of the timeline, without what is before and after."""
    return page.partition('<ol class="rqueue-timeline">')[2].partition("</ol>")[0]


def test_a_job_that_waits_was_enqueued_and_stands_somewhere(page):
    for make in (rows.ready, rows.scheduled, rows.blocked, rows.claimed):
        found = steps(page(make().job))
        assert found.count("<li>") == 2
        assert found.startswith("<li>enqueued")
        assert ("due" in found) == (make is rows.scheduled)


def test_a_job_that_is_over_tells_of_its_attempts_and_how_long_it_took(page):
    worker = rows.process()
    job = rows.job(enqueued_at=timezone.now() - timedelta(hours=3))
    rows.attempt(job, exception_class="shop.CardRefused")
    end = rows.finished(job)
    end.attempts, end.worker_id = 2, worker.name
    end.started_at = end.finished_at - timedelta(minutes=5)
    end.save()
    found = steps(page(job))
    assert found.count("<li>") == 4
    assert "shop.CardRefused" in found
    assert f'<a href="{url(worker)}">{worker.name}</a>' in found
    assert "attempt 2" in found
    assert "took 5 minutes" in found
    assert "3 hours after it was enqueued" in found


def test_of_many_attempts_the_latest_are_told(page, monkeypatch):
    monkeypatch.setattr(job_timeline, "LATEST_ATTEMPTS", 1)
    job = rows.ready().job
    for number in (6, 7):
        rows.attempt(job, attempts=number)
    found = steps(page(job))
    assert "attempt 7" in found
    assert "attempt 6" not in found


def test_a_lost_job_stands_nowhere(page):
    assert steps(page(rows.job())).count("<li>") == 1


def test_the_run_of_a_recurring_task_leads_to_it(page):
    task = rows.recurring_task()
    job = rows.ready().job
    rows.recurring_execution(task_key=task.key, job_id=job.pk)
    assert f'<a href="{url(task)}">{task.key}</a>' in page(job)
    task.delete()
    assert task.key in page(job)


def test_each_concurrency_key_leads_to_who_has_a_slot(page):
    keys = [rows.semaphore(key=key) for key in ("account-7", "card-9")]
    found = page(rows.ready(rows.job(concurrency_key="account-7\ncard-9")).job)
    for key in keys:
        assert f'<a href="{url(key)}">{key.key}</a>' in found


def test_what_others_have_written_is_text(page):
    row = rows.failed(exception_class="<b>Error</b>")
    row.worker_id = "<i>w</i>"
    row.save()
    found = steps(page(row.job))
    assert "&lt;b&gt;Error" in found
    assert "&lt;i&gt;w" in found
