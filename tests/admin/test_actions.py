"""What operators do, and what those who may only look cannot."""

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.urls import reverse

from robust_queue.admin import executions
from robust_queue.models import FailedExecution, Job, Pause
from tests.support import rows
from tests.support.invariants import states
from tests.support.statements import statements

FAILED = "admin:robust_queue_failedexecution_changelist"
QUEUES = "admin:robust_queue_queue_changelist"


def act(browser, action, *chosen, **fields):
    return browser.post(
        reverse(FAILED),
        {"action": action, "_selected_action": [r.pk for r in chosen], **fields},
        follow=True,
    )


def log():
    """What the admin has written down, oldest first."""
    entries = LogEntry.objects.order_by("pk").select_related("user", "content_type")
    return [
        (e.user.username, e.action_flag, e.content_type.model, e.object_id)
        for e in entries
    ]


def test_selected_failures_are_retried(as_staff):
    first, second, third = (rows.failed() for _ in range(3))
    browser = as_staff("change_failedexecution")
    response = act(browser, "retry_selected", first, second)
    assert "2 jobs retried." in response.content.decode()
    assert states() == {first.pk: "ready", second.pk: "ready", third.pk: "failed"}


def test_selected_failures_are_discarded(as_staff):
    first, second = rows.failed(), rows.failed()
    browser = as_staff("view_failedexecution", "delete_failedexecution")
    response = act(browser, "discard_selected", first)
    assert "1 job discarded." in response.content.decode()
    assert states() == {second.pk: "failed"}
    assert not Job.objects.filter(pk=first.pk).exists()


def test_all_that_match_can_be_chosen_but_no_more_than_were_counted(
    as_staff, monkeypatch
):
    monkeypatch.setattr(executions, "REACH", 3)
    made = [rows.failed() for _ in range(4)]
    browser = as_staff("change_failedexecution")
    act(browser, "retry_selected", made[0], select_across=1, index=0)
    assert sorted(states().values()) == ["failed", "ready", "ready", "ready"]


@pytest.mark.parametrize("action", ["retry_selected", "discard_selected"])
def test_who_may_only_view_failures_neither_sees_nor_does_it(as_staff, action):
    row = rows.failed()
    browser = as_staff("view_failedexecution")
    page = browser.get(reverse(FAILED)).content.decode()
    assert action not in page
    for fields in ({}, {"index": 0}, {"select_across": 1, "index": 0}):
        act(browser, action, row, **fields)
        assert states() == {row.pk: "failed"}


def test_who_may_change_other_tables_may_not_act_on_failures(as_staff):
    row = rows.failed()
    browser = as_staff("view_failedexecution", "change_job", "delete_job")
    for action in ("retry_selected", "discard_selected"):
        act(browser, action, row)
    assert FailedExecution.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize(
    ("permission", "forbidden"),
    [("delete", "retry_selected"), ("change", "discard_selected")],
)
def test_who_may_do_one_thing_may_not_do_the_other(as_staff, permission, forbidden):
    """To discard is to delete: who may only change things cannot."""
    row = rows.failed()
    browser = as_staff("view_failedexecution", f"{permission}_failedexecution")
    page = browser.get(reverse(FAILED)).content.decode()
    assert forbidden not in page
    for fields in ({}, {"index": 0}, {"select_across": 1, "index": 0}):
        act(browser, forbidden, row, **fields)
        assert states() == {row.pk: "failed"}
    assert log() == []


def test_it_is_written_down_who_retried_and_who_discarded(as_staff):
    first, second, third = (rows.failed() for _ in range(3))
    browser = as_staff("change_failedexecution", "delete_failedexecution", "view_job")
    act(browser, "retry_selected", first, second)
    act(browser, "discard_selected", third)
    retried = {("ada", CHANGE, "job", str(each.pk)) for each in (first, second)}
    assert set(log()[:2]) == retried
    assert log()[2:] == [("ada", DELETION, "job", str(third.pk))]
    history = reverse("admin:robust_queue_job_history", args=[first.pk])
    assert "Retried." in browser.get(history).content.decode()
    assert rows.TASK in str(LogEntry.objects.get(action_flag=DELETION))


# ── Queues ─────────────────────────────────────────────────────────────────────


def test_the_queues_are_in_the_index(as_superuser):
    page = as_superuser.get(reverse("admin:index")).content.decode()
    assert f'href="{reverse(QUEUES)}"' in page


def test_queues_are_listed_with_what_waits_in_them(as_staff):
    rows.ready(rows.job(queue_name="mail"))
    rows.pause(queue_name="photos")
    response = as_staff("view_pause").get(reverse(QUEUES))
    found = {row["queue"].name: row["queue"] for row in response.context["rows"]}
    assert found["mail"].ready == 1
    assert found["photos"].is_paused
    page = response.content.decode()
    assert "0 seconds" in page
    assert "<button" not in page.partition('id="content-main"')[2]


def test_queues_are_paused_and_resumed(as_staff):
    rows.ready(rows.job(queue_name="mail"))
    browser = as_staff("change_pause")
    page = browser.get(reverse(QUEUES)).content.decode()
    assert 'name="pause" value="mail"' in page
    response = browser.post(reverse(QUEUES), {"pause": "mail"}, follow=True)
    assert "Queue “mail” is paused." in response.content.decode()
    assert 'name="resume" value="mail"' in response.content.decode()
    assert Pause.objects.filter(pk="mail").exists()
    response = browser.post(reverse(QUEUES), {"pause": "mail"}, follow=True)
    assert "Queue “mail” was paused already." in response.content.decode()
    response = browser.post(reverse(QUEUES), {"resume": "mail"}, follow=True)
    assert "Queue “mail” gives out work again." in response.content.decode()
    assert not Pause.objects.exists()
    response = browser.post(reverse(QUEUES), {"resume": "mail"}, follow=True)
    assert "Queue “mail” was not paused." in response.content.decode()
    assert log() == [
        ("ada", ADDITION, "pause", "mail"),
        ("ada", DELETION, "pause", "mail"),
    ]


def test_a_queue_that_cannot_be_is_refused(as_superuser):
    response = as_superuser.post(reverse(QUEUES), {"pause": "mail*"}, follow=True)
    assert "a name has no" in response.content.decode()
    assert not Pause.objects.exists()
    assert log() == []


def test_who_may_only_view_cannot_pause_or_resume(as_staff):
    rows.pause(queue_name="photos")
    browser = as_staff("view_pause")
    for field in ({"pause": "mail"}, {"resume": "photos"}):
        assert browser.post(reverse(QUEUES), field).status_code == 403
    assert list(Pause.objects.values_list("pk", flat=True)) == ["photos"]


def test_who_may_not_even_view_sees_no_queues(as_staff):
    browser = as_staff("view_job")
    assert browser.get(reverse(QUEUES)).status_code == 403
    page = browser.get(reverse("admin:index")).content.decode()
    assert reverse(QUEUES) not in page


def test_strangers_are_asked_to_log_in(client, db):
    for name in (QUEUES, FAILED):
        response = client.post(reverse(name), {"pause": "mail"})
        assert response.status_code == 302
        assert "login" in response.url
    assert not Pause.objects.exists()


def test_requests_of_other_sites_are_refused(as_superuser):
    as_superuser.handler.enforce_csrf_checks = True
    assert as_superuser.post(reverse(QUEUES), {"pause": "mail"}).status_code == 403
    assert not Pause.objects.exists()


def test_the_number_of_queries_does_not_depend_on_the_number_of_queues(as_superuser):
    as_superuser.get(reverse(QUEUES))
    counts = []
    for number in (1, 19):
        for _ in range(number):
            rows.pause()
            rows.ready(rows.job(queue_name=f"queue-{Job.objects.count()}"))
        with statements() as sent:
            as_superuser.get(reverse(QUEUES))
        counts.append(len(sent))
    assert counts[0] == counts[1] == 4
