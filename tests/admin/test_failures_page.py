"""What has failed alike, on one page, and what is done to a whole group of it."""

import re
from html import unescape

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.test import Client
from django.urls import reverse

from robust_queue.admin import acting
from robust_queue.admin import failures as page
from robust_queue.lifecycle import failures as grouping
from robust_queue.lifecycle import selection
from robust_queue.lifecycle.operations import carry_out
from robust_queue.models import FailedExecution, Operation
from tests.support import rows
from tests.support.invariants import states
from tests.support.statements import statements

URL = "/admin/robust_queue/failures/"
REFUSED = "shop.errors.CardRefused"
GROUP = {"task": rows.TASK, "exception": REFUSED, "kind": ""}


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def test_the_index_leads_to_the_page(as_staff):
    browser = as_staff("view_failedexecution", "view_arguments")
    assert reverse("admin:robust_queue_failures_changelist") == URL
    assert f'href="{URL}"' in text(browser.get(reverse("admin:index")))
    assert "0 jobs have failed." in text(browser.get(URL))


def test_groups_are_shown_with_what_they_said(as_superuser):
    for number in range(3):
        rows.failed(exception_class=REFUSED, message=f"Card {number} was refused.")
    rows.failed(exception_class=REFUSED, message="No bank.")
    shown = text(as_superuser.get(URL))
    assert "4 jobs have failed." in shown
    assert "CardRefused" in shown
    assert "No bank." in shown
    assert "<bdi>Card # was refused.</bdi>" in shown


def test_a_group_leads_to_the_list_that_has_it(as_superuser):
    mine = rows.failed(exception_class=REFUSED, kind="timed_out")
    rows.failed(exception_class=REFUSED)
    rows.failed(kind="timed_out")
    shown = text(as_superuser.get(URL))
    links = re.findall(r'href="([^"]+failedexecution/\?[^"]+)"', shown)
    (link,) = [
        each for each in map(unescape, links) if "timed_out&exception=shop" in each
    ]
    listed = as_superuser.get(link).context["cl"].result_list
    assert [row.pk for row in listed] == [mine.pk]


def test_who_has_no_permission_is_refused(as_staff):
    browser = as_staff("view_pause", "discard_job")
    rows.failed(exception_class=REFUSED)
    assert browser.get(URL).status_code == 403
    assert browser.post(URL, {**GROUP, "retry": ""}).status_code == 403
    discard = {**GROUP, "discard": "1", "confirmed": "1"}
    assert browser.post(URL, discard).status_code == 403
    assert set(states().values()) == {"failed"}


@pytest.mark.parametrize(
    "pressed", [{"retry": ""}, {"discard": ""}, {"discard": "", "confirmed": "1"}]
)
def test_who_may_only_look_has_no_buttons_and_presses_none(as_staff, pressed):
    rows.failed(exception_class=REFUSED)
    browser = as_staff("view_failedexecution")
    shown = text(browser.get(URL))
    assert 'name="retry"' not in shown
    assert 'name="discard"' not in shown
    assert browser.post(URL, {**GROUP, **pressed}).status_code == 403
    assert set(states().values()) == {"failed"}


def test_retrying_and_discarding_are_different_permissions(as_staff):
    rows.failed(exception_class=REFUSED)
    browser = as_staff("view_failedexecution", "retry_job")
    shown = text(browser.get(URL))
    assert 'name="retry"' in shown
    assert 'name="discard"' not in shown
    discard = {**GROUP, "discard": "", "confirmed": "1"}
    assert browser.post(URL, discard).status_code == 403


def test_a_group_is_retried(as_staff, monkeypatch):
    monkeypatch.setattr(selection, "BATCH_SIZE", 2)
    mine = [rows.failed(exception_class=REFUSED) for _ in range(5)]
    other = rows.failed()
    browser = as_staff("view_failedexecution", "retry_job")
    response = browser.post(URL, {**GROUP, "retry": ""}, follow=True)
    assert "5 jobs retried." in text(response)
    assert states() == {other.pk: "failed", **{row.pk: "ready" for row in mine}}
    (entry,) = LogEntry.objects.all()
    assert (entry.action_flag, entry.object_repr) == (CHANGE, "5 jobs retried.")
    assert entry.content_type.model == "failedexecution"
    assert f"exception={REFUSED}&q={rows.TASK}" in entry.change_message


@pytest.mark.parametrize("verb", ["retry", "discard"])
def test_a_large_group_is_left_to_dispatchers(as_staff, monkeypatch, verb):
    monkeypatch.setattr(page, "AT_ONCE", 2)
    mine = [rows.failed(exception_class=REFUSED, kind="timed_out") for _ in range(3)]
    others = [rows.failed(exception_class=REFUSED), rows.failed(kind="timed_out")]
    browser = as_staff("view_failedexecution", "retry_job", "discard_job")
    pressed = {**GROUP, "kind": "timed_out", verb: "", "confirmed": "1"}
    response = browser.post(URL, pressed, follow=True)
    asked = Operation.objects.get()
    assert f"/operation/{asked.pk}/" in response.redirect_chain[0][0]
    assert "with exception shop.errors.CardRefused" in text(response)
    assert (asked.verb, asked.expected, asked.requested_by) == (verb, 3, "ada")
    assert set(states().values()) == {"failed"}
    assert str(asked.pk) == LogEntry.objects.get().object_id
    while carry_out("default", asked.pk):
        pass
    left = {row.pk for row in others}
    assert {pk for pk, state in states().items() if state == "failed"} == left
    assert len(mine) == Operation.objects.get().done


def test_a_group_is_discarded_once_that_is_confirmed(as_staff):
    rows.failed(exception_class=REFUSED)
    other = rows.failed()
    browser = as_staff("view_failedexecution", "discard_job")
    question = text(browser.post(URL, {**GROUP, "discard": ""}))
    assert "1 job of this group will be deleted for good" in question
    assert len(states()) == 2
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', question))
    fields.pop("csrfmiddlewaretoken")
    assert "1 job discarded." in text(browser.post(URL, fields, follow=True))
    assert states() == {other.pk: "failed"}
    assert LogEntry.objects.get().action_flag == DELETION


def test_the_question_counts_no_further_than_lists_do(as_superuser, monkeypatch):
    monkeypatch.setattr(page, "REACH", 2)
    for _ in range(3):
        rows.failed(exception_class=REFUSED)
    question = text(as_superuser.post(URL, {**GROUP, "discard": ""}))
    assert "2 or more jobs of this group" in question


def test_what_takes_too_long_says_so(as_superuser, monkeypatch):
    monkeypatch.setattr(selection, "BATCH_SIZE", 1)
    monkeypatch.setattr(acting, "PATIENCE", -1)
    for _ in range(2):
        rows.failed(exception_class=REFUSED)
    shown = text(as_superuser.post(URL, {**GROUP, "retry": ""}, follow=True))
    assert "1 job retried." in shown
    assert "do it again" in shown


@pytest.mark.parametrize("missing", ["task", "exception", "kind"])
def test_a_part_that_is_left_out_does_not_mean_any(as_superuser, missing):
    rows.failed(exception_class=REFUSED)
    part = {name: value for name, value in GROUP.items() if name != missing}
    asked = {**part, "discard": "", "confirmed": "1"}
    assert as_superuser.post(URL, asked).status_code == 400
    assert len(states()) == 1


def test_nonsense_is_refused(as_superuser):
    assert as_superuser.post(URL, GROUP).status_code == 400
    strange = {**GROUP, "task": "a\0b", "retry": ""}
    assert as_superuser.post(URL, strange).status_code == 400
    unknown = {**GROUP, "kind": "of a later version", "retry": ""}
    assert "0 jobs retried." in text(as_superuser.post(URL, unknown, follow=True))


def test_a_form_from_elsewhere_is_refused(as_superuser):
    rows.failed(exception_class=REFUSED)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = as_superuser.cookies
    assert strict.post(URL, {**GROUP, "retry": ""}).status_code == 403
    assert set(states().values()) == {"failed"}


def test_hostile_text_is_only_text(as_superuser):
    evil = '<script>alert("x")</script>\u202egnp'
    rows.failed(rows.job(task_path=evil), exception_class=evil, message=evil)
    rows.failed(rows.job(task_path=evil), exception_class=evil, message="x", kind="<b>")
    shown = text(as_superuser.get(URL))
    assert "<script>alert" not in shown
    assert "<b>" not in shown
    assert shown.count("\ufffdgnp") >= 3
    asked = {"task": evil, "exception": evil, "kind": "", "discard": ""}
    assert "<script>alert" not in text(as_superuser.post(URL, asked))


def test_the_page_says_what_it_leaves_out(as_superuser, monkeypatch):
    monkeypatch.setattr(grouping, "MOST_FAILURES", 3)
    monkeypatch.setattr(grouping, "MOST_GROUPS", 2)
    for name in "abcd":
        rows.failed(exception_class=name)
    shown = text(as_superuser.get(URL))
    assert "only the latest 3 are grouped here" in shown
    assert "1 smaller group is not shown." in shown


def test_one_query_however_many_failures_there_are(as_superuser):
    rows.failed()
    as_superuser.get(URL)
    with statements() as for_one:
        as_superuser.get(URL)
    for number in range(20):
        rows.failed(exception_class=f"shop.E{number}")
    with statements() as for_many:
        as_superuser.get(URL)
    assert len(for_many) == len(for_one) == 3  # the session, the user, the failures
    assert FailedExecution.objects.count() == 21
