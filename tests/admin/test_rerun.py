"""Edit and re-run: a form for jobs that have ended."""

import json

import pytest
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.auth.models import Permission, User
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from robust_queue.arguments import dump_call, load_call
from robust_queue.lifecycle.retry import retry
from robust_queue.models import Job
from tests.support import rows
from tests.support.invariants import states

BOTH = (
    "view_failedexecution",
    "view_job",
    "view_arguments",
    "retry_job",
    "discard_job",
)


def url(row, page="rerun"):
    return reverse(f"admin:robust_queue_{row._meta.model_name}_{page}", args=[row.pk])


def filled(**changes):
    arguments = changes.pop("arguments", {"args": [1], "kwargs": {}})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"arguments": text, "queue_name": "default", "priority": "0", **changes}


@pytest.mark.parametrize("make", [rows.failed, rows.finished])
def test_its_pages_lead_to_the_form(as_staff, make):
    row, browser = make(), as_staff(*BOTH, "view_finishedexecution", "add_job")
    of_job = reverse("admin:robust_queue_job_change", args=[row.pk])
    for page in (url(row, "change"), of_job):
        assert f'href="{url(row)}"' in browser.get(page).content.decode()


def test_the_form_shows_what_was_asked_for(as_staff):
    arguments = '{"args":["gr\\u00fcn"],"kwargs":{}}'
    row = rows.failed(rows.job(arguments=arguments, queue_name="mail", priority=3))
    page = as_staff(*BOTH).get(url(row)).content.decode()
    assert "&quot;grün&quot;" in page
    assert 'value="mail"' in page
    assert 'value="3"' in page


def test_text_that_cannot_be_sent_as_it_is_stays_escaped(as_staff):
    row = rows.failed(rows.job(arguments='{"args":["\\ud800"],"kwargs":{}}'))
    page = as_staff(*BOTH).get(url(row)).content.decode()
    assert "\\ud800" in page


def test_a_failed_job_is_replaced(as_staff):
    row = rows.failed()
    given = filled(arguments={"args": [43], "kwargs": {"to": "bob"}}, priority="5")
    response = as_staff(*BOTH).post(url(row), given, follow=True)
    job = Job.objects.get()
    assert job.pk != row.pk
    assert (job.priority, states()[job.pk]) == (5, "ready")
    assert json.loads(job.arguments) == {"args": [43], "kwargs": {"to": "bob"}}
    page = response.content.decode()
    assert f"Job {row.pk} was replaced." in page
    assert response.redirect_chain[-1][0].endswith(
        reverse("admin:robust_queue_job_change", args=[job.pk])
    )
    log = LogEntry.objects.order_by("pk").values_list("action_flag", "object_id")
    assert list(log) == [(DELETION, str(row.pk)), (ADDITION, str(job.pk))]


def test_a_finished_job_stays_beside_the_new_one(as_staff):
    row, browser = rows.finished(), as_staff("view_job", "view_arguments", "add_job")
    assert "stays as it is" in browser.get(url(row)).content.decode()
    page = browser.post(url(row), filled(), follow=True).content.decode()
    assert f"Job {row.pk} runs anew, as this one." in page
    new = Job.objects.exclude(pk=row.pk).get()
    assert states() == {row.pk: "finished", new.pk: "ready"}
    log = LogEntry.objects.values_list("action_flag", "object_id")
    assert list(log) == [(ADDITION, str(new.pk))]


def test_what_is_no_json_is_kept_by_its_tag(as_staff):
    moment = timezone.now().replace(microsecond=0)
    row = rows.failed(rows.job(arguments=dump_call([moment], {})))
    browser = as_staff(*BOTH)
    shown = browser.get(url(row)).context["form"].initial["arguments"]
    browser.post(url(row), filled(arguments=shown))
    assert load_call(Job.objects.get().arguments) == ([moment], {})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (filled(arguments="{"), "is not JSON"),
        (filled(arguments="[1]"), "is not a call with args and kwargs"),
        (
            filled(arguments={"args": [{"$type": "nonsense"}], "kwargs": {}}),
            "is not known",
        ),
        (filled(queue_name="mail*"), "a name has no"),
        (filled(queue_name=""), "This field is required."),
        (filled(priority="101"), "priority"),
        (filled(priority="much"), "Enter a whole number."),
        (filled(arguments={"args": [], "kwargs": {"x" * 10: "y" * 1_100_000}}), "more"),
    ],
    ids=["syntax", "shape", "tag", "queue", "no queue", "range", "number", "size"],
)
def test_what_is_wrong_is_told_in_the_form(as_staff, given, problem):
    row = rows.failed()
    response = as_staff(*BOTH).post(url(row), given)
    assert response.status_code == 200
    errors = response.context["form"].errors
    assert problem in json.dumps(errors.get_json_data())
    assert "Nothing was changed." in response.content.decode()
    assert states() == {row.pk: "failed"}
    assert not LogEntry.objects.exists()


def test_arguments_that_do_not_fit_the_task(as_staff):
    row = rows.failed(rows.job(task_path="tests.testapp.tasks.add"))
    response = as_staff(*BOTH).post(
        url(row), filled(arguments={"args": [1, 2, 3], "kwargs": {}})
    )
    (error,) = response.context["form"].errors["arguments"]
    assert "too many positional arguments" in error


def test_a_task_that_is_gone(as_staff):
    row = rows.failed(rows.job(task_path="tests.testapp.tasks.gone"))
    browser = as_staff(*BOTH, "view_unredacted_arguments")
    response = browser.post(url(row), filled())
    assert "No task" in response.content.decode()
    assert states() == {row.pk: "failed"}


def test_an_alias_that_is_gone(as_staff):
    row = rows.failed(rows.job(backend="removed"))
    response = as_staff(*BOTH).post(url(row), filled())
    assert "removed" in json.dumps(response.context["form"].errors.get_json_data())
    assert states() == {row.pk: "failed"}


def test_somebody_was_faster(as_staff):
    row = rows.failed()
    browser = as_staff(*BOTH)
    browser.get(url(row))
    retry("default", row.pk)
    assert browser.post(url(row), filled()).status_code == 404
    assert states() == {row.pk: "ready"}


@pytest.mark.parametrize("codename", ["view", "retry", "discard"])
def test_who_may_not_both_retry_and_discard_neither_sees_nor_does_it(
    as_staff, codename
):
    row = rows.failed()
    browser = as_staff("view_failedexecution")
    if codename != "view":
        wanted = Permission.objects.get(codename=f"{codename}_job")
        User.objects.get().user_permissions.add(wanted)
    assert url(row) not in browser.get(url(row, "change")).content.decode()
    assert browser.get(url(row)).status_code == 403
    assert browser.post(url(row), filled()).status_code == 403
    assert states() == {row.pk: "failed"}


def test_a_finished_job_takes_the_leave_to_enqueue(as_staff):
    """It stays, so that there is one job more."""
    row, browser = rows.finished(), as_staff(*BOTH)
    of_job = reverse("admin:robust_queue_job_change", args=[row.pk])
    assert url(row) not in browser.get(of_job).content.decode()
    assert browser.post(url(row), filled()).status_code == 403
    assert states() == {row.pk: "finished"}


def test_strangers_are_asked_to_log_in(client, db):
    row = rows.failed()
    assert "login" in client.post(url(row), filled()).url
    assert states() == {row.pk: "failed"}


def test_requests_of_other_sites_are_refused(as_superuser):
    row = rows.failed()
    as_superuser.handler.enforce_csrf_checks = True
    assert as_superuser.post(url(row), filled()).status_code == 403


def test_a_queue_that_the_alias_does_not_have(as_staff):
    row = rows.failed()
    backend = "robust_queue.backend.RobustQueueBackend"
    tasks = {"default": {"BACKEND": backend, "QUEUES": ["default"]}}
    with override_settings(TASKS=tasks):
        response = as_staff(*BOTH).post(url(row), filled(queue_name="nonsense"))
    assert "nonsense" in json.dumps(response.context["form"].errors.get_json_data())
    assert states() == {row.pk: "failed"}
