"""Buttons in a browser: plain forms, which do the same without any script."""

import pytest
from django.urls import reverse
from django.utils import timezone

from robust_queue.lifecycle.timetable import schedule
from robust_queue.models import (
    FailedExecution,
    Job,
    Operation,
    Pause,
    ReadyExecution,
    RecurringExecution,
    RecurringTask,
    ScheduledExecution,
    TaskPause,
    Tuning,
)
from tests.browser import seed
from tests.browser.site import apart
from tests.support import rows
from tests.testapp.tasks import add

WIDTH = 1440
SURE = "Yes, I\N{RIGHT SINGLE QUOTATION MARK}m sure"


@pytest.fixture
def window(windows, width, has_scripts):
    """A wide window in the light and a narrow one in the dark, in which all is well."""
    visitor = windows(width, has_scripts)
    visitor.page.emulate_media(color_scheme="light" if width == WIDTH else "dark")
    yield visitor
    assert not visitor.troubles


@pytest.fixture
def name(width, has_scripts):
    """Of rows that only this test knows."""
    return f"button-{width}-{'scripts' if has_scripts else 'plain'}"


def list_of(model_name):
    return reverse(f"admin:robust_queue_{model_name}_changelist")


def page_of(row):
    return reverse(f"admin:robust_queue_{row._meta.model_name}_change", args=[row.pk])


def is_there(rows):
    """Ask the database, where it is allowed."""
    return apart(rows.exists)


def test_a_queue_is_paused_and_resumed(window, name):
    apart(lambda: rows.ready(seed.job(queue=name)))
    paused = Pause.objects.filter(queue_name=name)
    window.open(list_of("queue"))
    window.press(f"Pause {name}")
    assert f"Queue “{name}” is paused." in window.text()
    assert is_there(paused)
    window.press(f"Resume {name}")
    assert f"Queue “{name}” gives out work again." in window.text()
    assert not is_there(paused)


def test_a_group_of_failures_is_retried(window, name):
    task, exception = f"shop.{name}", "shop.errors.Refused"
    failed = apart(_failed_alike, task, exception)
    window.open(list_of("failures"))
    window.press(f"Retry all of {task}: Refused")
    assert not is_there(FailedExecution.objects.filter(pk__in=failed))
    assert is_there(ReadyExecution.objects.filter(pk__in=failed))


def _failed_alike(task, exception):
    jobs = [rows.job(task_path=task) for _ in range(3)]
    return [rows.failed(each, exception_class=exception).pk for each in jobs]


def test_a_recurring_task_is_run_and_paused_and_resumed(window, name):
    row = apart(_recurring, name)
    enabled = RecurringTask.objects.filter(key=name, enabled=True)
    window.open(page_of(row))
    window.press("Run now")
    assert is_there(RecurringExecution.objects.filter(task_key=name, by_hand=True))
    window.press("Pause")
    assert not is_there(enabled)
    window.press("Resume")
    assert is_there(enabled)


def _recurring(key):
    return schedule("default", key, add, schedule="0 12 * * *", args=[1, 2])


def test_a_queue_is_cleared_after_a_question(window, name):
    job = apart(lambda: rows.ready(seed.job(queue=f"{name}-clear"))).pk
    window.open(list_of("queue"))
    window.press(f"Clear {name}-clear")
    assert is_there(Job.objects.filter(pk=job))
    window.press(SURE)
    assert not is_there(Job.objects.filter(pk=job))


def test_a_group_of_failures_is_discarded_after_a_question(window, name):
    task, exception = f"shop.{name}.gone", "shop.errors.Hopeless"
    failed = apart(_failed_alike, task, exception)
    window.open(list_of("failures"))
    window.press(f"Discard all of {task}: Hopeless")
    window.press(SURE)
    assert not is_there(Job.objects.filter(pk__in=failed))


def test_a_job_is_retried_and_cancelled_and_run_and_discarded(window, name):
    failed = apart(lambda: rows.failed(seed.job(queue=name))).pk
    later = apart(lambda: rows.scheduled(seed.job(queue=name))).pk
    window.open(job_page(failed))
    window.press("Retry")
    assert is_there(ReadyExecution.objects.filter(pk=failed))
    window.press("Cancel")
    assert is_there(FailedExecution.objects.filter(pk=failed, kind="cancelled"))
    window.open(job_page(later))
    window.press("Run now")
    now = timezone.now()
    assert is_there(ScheduledExecution.objects.filter(pk=later, scheduled_at__lte=now))
    window.press("Discard")
    window.press(SURE)
    assert not is_there(Job.objects.filter(pk=later))


def test_jobs_that_are_ticked_are_retried(window, name):
    failed = apart(_failed_alike, f"shop.{name}.ticked", "shop.errors.Refused")
    window.open(f"{list_of('job')}?state=failed&task=shop.{name}.ticked")
    for each in failed:
        window.page.check(f"input[value='{each}']")
    window.page.select_option("select[name=action]", "retry_selected")
    window.press("Run")
    assert "3 jobs retried." in window.text()
    assert not is_there(FailedExecution.objects.filter(pk__in=failed))


def test_all_that_match_are_left_to_an_operation_that_is_stopped(window, name):
    apart(_failed_alike, f"shop.{name}.all", "shop.errors.Refused")
    window.open(f"{list_of('job')}?state=failed&task=shop.{name}.all")
    with window.page.expect_navigation():
        window.page.get_by_role("link", name="Retry…").click()
    assert f"of task shop.{name}.all" in window.text()
    window.press(f"Retry: {SURE[0].lower()}{SURE[1:]}")
    assert "carried out in the background" in window.text()
    asked = Operation.objects.filter(criteria__contains=f"shop.{name}.all")
    assert is_there(asked.filter(finished_at=None))
    window.press("Stop")
    assert is_there(asked.exclude(stopped_at=None))


def test_a_worker_is_told_to_be_quiet_and_to_go_on(window, name):
    worker = apart(_worker, f"{name}:1@here")
    wish = Tuning.objects.filter(process_id=worker.pk)
    window.open(list_of("processtree"))
    window.press(f"Quiet {name}:1@here")
    assert is_there(wish.filter(is_quiet=True))
    window.press(f"Resume {name}:1@here")
    assert not is_there(wish.filter(is_quiet=True))
    window.press(f"Restart {name}:1@here")
    assert is_there(wish.filter(is_to_stop=True))


def _worker(name):
    chief = rows.process("Supervisor", name=f"chief of {name}")
    return rows.process("Worker", name=name, supervisor_id=chief.pk)


def test_a_page_stays_up_to_date(windows):
    visitor = windows(WIDTH, True)
    visitor.open(list_of("queue"))
    apart(lambda: rows.ready(seed.job(queue="just-now")))
    visitor.page.wait_for_selector("text=just-now")
    visitor.page.uncheck("#rqueue-live")
    apart(lambda: ReadyExecution.objects.filter(queue_name="just-now").delete())
    assert "just-now" in visitor.text()
    visitor.page.check("#rqueue-live")
    visitor.page.wait_for_selector("text=just-now", state="detached")
    assert not visitor.troubles


def job_page(pk):
    return reverse("admin:robust_queue_job_change", args=[pk])


def test_a_supervisor_is_told_to_stop_after_a_question(window, name):
    worker = apart(_worker, f"{name}-all:1@here")
    wish = Tuning.objects.filter(process_id=worker.supervisor_id)
    window.open(list_of("processtree"))
    _of_household(window, name, "Quiet all")
    assert is_there(wish.filter(is_quiet=True))
    _of_household(window, name, "Stop")
    assert not is_there(wish.filter(is_to_stop=True))
    window.press(SURE)
    assert is_there(wish.filter(is_to_stop=True))


def _of_household(window, name, button):
    heading = f"chief of {name}-all:1@here"
    household = window.page.locator(".rqueue-household").filter(has_text=heading)
    with window.page.expect_navigation():
        household.get_by_role("button", name=button, exact=True).click()


def test_a_failed_job_is_edited_and_run_again(window, name):
    failed = apart(lambda: rows.failed(rows.job(queue_name=name))).pk
    window.open(job_page(failed))
    with window.page.expect_navigation():
        window.page.get_by_role("link", name="Edit and re-run").click()
    window.page.fill("[name=queue_name]", f"{name}-again")
    window.press("Run again")
    assert not is_there(Job.objects.filter(pk=failed))
    assert is_there(ReadyExecution.objects.filter(queue_name=f"{name}-again"))


def test_a_schedule_is_added_and_deleted(window, name):
    window.open(reverse("admin:robust_queue_recurringtask_add"))
    window.page.fill("[name=key]", f"{name}-new")
    window.page.select_option("[name=task_path]", add.module_path)
    window.page.fill("[name=schedule]", "every 5 minutes")
    window.page.fill("[name=arguments]", '{"args": [1, 2], "kwargs": {}}')
    window.press("Save and continue editing")
    row = RecurringTask.objects.filter(key=f"{name}-new")
    assert is_there(row)
    assert "Every 5 minutes" in window.text()
    window.press("Delete")
    window.press(SURE)
    assert not is_there(row)


def test_actions_of_lists_are_done_to_what_is_ticked(window, name):
    pause = apart(lambda: rows.task_pause(task_path=f"shop.{name}"))
    row = apart(_recurring, f"{name}-listed")
    (failed, *_) = apart(_failed_alike, f"shop.{name}.raw", "shop.errors.Refused")
    _tick(window, "taskpause", pause.pk, "resume_selected")
    assert not is_there(TaskPause.objects.filter(pk=pause.pk))
    _tick(window, "recurringtask", row.pk, "pause_selected")
    assert is_there(RecurringTask.objects.filter(pk=row.pk, enabled=False))
    _tick(window, "failedexecution", failed, "retry_selected")
    assert is_there(ReadyExecution.objects.filter(pk=failed))


def _tick(window, model_name, pk, action):
    window.open(list_of(model_name))
    window.page.check(f"input[name=_selected_action][value='{pk}']")
    window.page.select_option("select[name=action]", action)
    window.press("Run")
