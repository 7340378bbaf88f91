"""The page of a job: its buttons, what went wrong, and its record."""

import json
import re
from html import unescape
from uuid import uuid4

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.test import Client
from django.urls import reverse

from robust_queue.admin import tracebacks
from robust_queue.models import Cancellation
from tests.support import rows
from tests.support.invariants import states
from tests.support.statements import statements

LIST = reverse("admin:robust_queue_job_changelist")
DEEDS = ("retry_job", "discard_job", "cancel_job", "run_job")
ALL = ("view_job", "add_job", *DEEDS)
OWN = '  File "/srv/shop/tasks.py", line 7, in pay\n    refuse(card)\n    ~~~~~~^^^^^^'
FOREIGN = (
    '  File "/venv/lib/python3.13/site-packages/bank/api.py", line 3, in refuse\n'
    "    raise Refused"
)
STDLIB = '  File "/usr/lib/python3.13/json/__init__.py", line 9, in loads\n    boom()'
HEAD = "Traceback (most recent call last):"
END = "bank.Refused: no"


def page(job):
    return reverse("admin:robust_queue_job_change", args=[job.pk])


def do(job, verb):
    return reverse("admin:robust_queue_job_do", args=[job.pk, verb])


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def buttons(browser, job):
    shown = text(browser.get(page(job)))
    found = set(re.findall(rf'action="[^"]*{job.pk}/do/(\w+)/"', shown))
    return found | ({"rerun"} if f"{job.pk}/rerun/" in shown else set())


@pytest.mark.parametrize(
    ("make", "offered"),
    [
        (rows.scheduled, {"run_now", "cancel", "discard"}),
        (rows.blocked, {"cancel", "discard"}),
        (rows.ready, {"cancel", "discard"}),
        (rows.claimed, {"cancel"}),
        (rows.failed, {"retry", "discard", "rerun"}),
        (rows.finished, {"rerun"}),
    ],
)
def test_buttons_for_what_can_be_done(as_staff, make, offered):
    job = make().job
    assert buttons(as_staff(*ALL), job) == offered


def test_no_button_without_permission(as_staff):
    job = rows.failed().job
    assert buttons(as_staff("view_job", "retry_job"), job) == {"retry"}


@pytest.mark.parametrize(
    ("verb", "make", "becomes", "flag"),
    [
        ("retry", rows.failed, "ready", CHANGE),
        ("run_now", rows.scheduled, "scheduled", CHANGE),
        ("cancel", rows.ready, "failed", CHANGE),
    ],
)
def test_a_button_does_it_to_this_job(as_staff, verb, make, becomes, flag):
    job, other = make().job, make().job
    before = states()[other.pk]
    response = as_staff(*ALL).post(do(job, verb), follow=True)
    assert response.redirect_chain == [(page(job), 302)]
    assert states() == {job.pk: becomes, other.pk: before}
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.action_flag) == (str(job.pk), flag)


def test_one_that_runs_is_asked_to_end(as_staff):
    job = rows.claimed().job
    as_staff(*ALL).post(do(job, "cancel"))
    assert Cancellation.objects.get().job_id == job.pk


def test_discarding_is_asked_about(as_staff):
    job = rows.failed().job
    browser = as_staff(*ALL)
    assert "Discard this job for good?" in text(browser.post(do(job, "discard")))
    assert states() == {job.pk: "failed"}
    response = browser.post(do(job, "discard"), {"confirmed": "yes"}, follow=True)
    assert "1 job discarded." in text(response)
    assert states() == {}
    assert LogEntry.objects.get().action_flag == DELETION


def test_one_that_has_moved_on_is_left_alone(as_staff):
    job = rows.claimed().job
    response = as_staff(*ALL).post(do(job, "retry"), follow=True)
    assert f"Job {job.pk} is running: nothing was done to it." in text(response)
    assert states() == {job.pk: "claimed"}
    assert not LogEntry.objects.exists()


def test_one_that_is_gone(as_staff):
    job, gone = rows.failed().job, uuid4()
    address = do(job, "retry").replace(str(job.pk), str(gone))
    response = as_staff(*ALL).post(address, follow=True)
    assert f"Job {gone} is gone: nothing was done to it." in text(response)
    assert response.redirect_chain[0][0] == LIST
    assert states() == {job.pk: "failed"}


def test_no_id_at_all(as_superuser):
    address = reverse("admin:robust_queue_job_do", args=["x", "retry"])
    assert as_superuser.post(address).status_code == 404


@pytest.mark.parametrize("verb", ["retry", "discard", "cancel", "run_now"])
class TestRefusals:
    def test_without_the_permission(self, as_staff, verb):
        others = [each for each in ALL if each.partition("_")[0] not in verb]
        job = rows.scheduled().job
        response = as_staff(*others).post(do(job, verb), {"confirmed": "yes"})
        assert response.status_code == 403
        assert states() == {job.pk: "scheduled"}

    def test_without_a_look(self, as_staff, verb):
        job = rows.scheduled().job
        response = as_staff(*ALL[1:]).post(do(job, verb), {"confirmed": "yes"})
        assert response.status_code == 403

    def test_to_look_changes_nothing(self, as_superuser, verb):
        job = rows.failed().job
        assert as_superuser.get(do(job, verb)).status_code == 405
        assert states() == {job.pk: "failed"}

    def test_a_form_of_somebody_else(self, as_superuser, verb):
        job = rows.failed().job
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = as_superuser.cookies
        assert strict.post(do(job, verb), {"confirmed": "yes"}).status_code == 403
        assert states() == {job.pk: "failed"}


def test_a_verb_that_there_is_not(as_superuser):
    assert as_superuser.post(do(rows.failed().job, "eat")).status_code == 400


class TestWhatWentWrong:
    def test_every_attempt_with_what_it_said(self, as_superuser):
        job = rows.failed(attempts=2, message="Refused again.").job
        rows.attempt(job, message="Refused at first.")
        shown = text(as_superuser.get(page(job)))
        assert shown.index("Refused again.") < shown.index("Refused at first.")
        assert "attempt 2" in shown

    def test_our_own_code_comes_first(self, as_superuser):
        trace = "\n".join([HEAD, STDLIB, OWN, FOREIGN, END])
        shown = text(as_superuser.get(page(rows.failed(traceback=trace).job)))
        first, whole = shown.split("all of the traceback")
        assert "shop/tasks.py" in first
        assert "bank/api.py" not in first
        assert "bank/api.py" in whole

    def test_not_for_those_who_may_not_see_errors(self, as_staff):
        job = rows.failed(message="The card 4711 was refused.").job
        shown = text(as_staff("view_job").get(page(job)))
        assert "4711" not in shown

    @pytest.mark.parametrize(
        ("lines", "own"),
        [
            ([HEAD, STDLIB, OWN, FOREIGN, END], [HEAD, OWN, END]),
            ([HEAD, OWN, END], [HEAD, OWN, END]),
            ([HEAD, FOREIGN, END], []),
            (["no traceback at all"], []),
            ([""], []),
        ],
    )
    def test_own_frames(self, lines, own):
        assert tracebacks.own_frames("\n".join(lines)) == "\n".join(own)


class TestRecord:
    def record(self, browser, job):
        shown = text(browser.get(page(job)))
        found = re.search(
            r"as it is stored</summary><pre[^>]*>(.*?)</pre>", shown, re.S
        )
        return json.loads(unescape(found[1]))

    def test_the_job_and_where_it_stands(self, as_superuser):
        job = rows.claimed().job
        found = self.record(as_superuser, job)
        assert found["job"]["id"] == str(job.pk)
        assert found["job"]["arguments"]["args"] == [42]
        assert found["claimed"]["queue_name"] == "default"
        assert "token" not in found["claimed"]

    def test_redacted(self, as_staff, settings):
        settings.ROBUST_QUEUE = {"redact": ["to"]}
        job = rows.ready().job
        found = self.record(as_staff("view_job", "view_arguments"), job)
        assert "ada@" not in json.dumps(found)
        assert found["job"]["arguments"]["args"] == [42]

    def test_without_contents_for_those_who_may_not_see_them(self, as_staff):
        job = rows.failed().job
        found = self.record(as_staff("view_job"), job)
        assert "arguments" not in found["job"]
        assert not {"message", "traceback"} & found["failed"].keys()


def test_the_price_of_a_page(as_superuser):
    job = rows.failed().job
    as_superuser.get(page(job))
    with statements() as few:
        as_superuser.get(page(job))
    for number in range(2, 12):
        rows.attempt(job, attempts=number)
    with statements() as many:
        as_superuser.get(page(job))
    assert len(many) == len(few) <= 10
