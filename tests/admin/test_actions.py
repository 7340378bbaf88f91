"""What operators do, and what those who may only look cannot."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.urls import reverse
from django.utils import timezone

from robust_queue.admin import acting
from robust_queue.lifecycle import selection
from robust_queue.lifecycle.retry import retry
from robust_queue.models import FailedExecution, Job, Operation, Pause, TaskPause
from tests.support import rows
from tests.support.invariants import states
from tests.support.statements import statements

FAILED = "admin:robust_queue_failedexecution_changelist"
QUEUES = "admin:robust_queue_queue_changelist"


def act(browser, action, *chosen, query="", **fields):
    return browser.post(
        reverse(FAILED) + query,
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
    browser = as_staff("view_failedexecution", "retry_job")
    response = act(browser, "retry_selected", first, second)
    assert "2 jobs retried." in response.content.decode()
    assert states() == {first.pk: "ready", second.pk: "ready", third.pk: "failed"}


def test_selected_failures_are_discarded(as_staff):
    first, second = rows.failed(), rows.failed()
    browser = as_staff("view_failedexecution", "discard_job")
    response = act(browser, "discard_selected", first)
    assert "1 job discarded." in response.content.decode()
    assert states() == {second.pk: "failed"}
    assert not Job.objects.filter(pk=first.pk).exists()


@pytest.mark.parametrize("action", ["retry_selected", "discard_selected"])
def test_all_that_match_can_be_chosen(as_staff, monkeypatch, action):
    monkeypatch.setattr(selection, "BATCH_SIZE", 2)
    other = rows.failed()
    made = [rows.failed(rows.job(queue_name="mail")) for _ in range(5)]
    browser = as_staff("view_failedexecution", "retry_job", "discard_job")
    response = act(
        browser, action, made[0], query="?queue=mail", select_across=1, index=0
    )
    done, left = DONE[action]
    assert f"5 jobs {done}." in response.content.decode()
    assert states() == {other.pk: "failed", **{row.pk: left for row in made if left}}
    (entry,) = LogEntry.objects.all()
    assert (entry.object_repr, entry.object_id) == (f"5 jobs {done}.", None)
    assert "?queue=mail" in entry.change_message
    assert "5 jobs" in browser.get(reverse("admin:index")).content.decode()


DONE = {"retry_selected": ("retried", "ready"), "discard_selected": ("discarded", None)}


@pytest.mark.parametrize("action", ["retry_selected", "discard_selected"])
def test_more_than_the_list_has_counted_are_asked_about(as_staff, monkeypatch, action):
    monkeypatch.setattr(acting, "REACH", 3)
    made = [rows.failed() for _ in range(4)]
    browser = as_staff("view_failedexecution", "retry_job", "discard_job")
    # The menu below the list, not the one above it.
    chosen = {"action": ["", action], "select_across": ["1", "1"], "index": 1}
    ticked = {"_selected_action": [row.pk for row in made[:2]]}
    response = browser.post(reverse(FAILED), {**chosen, **ticked})
    assert "all 4 jobs that match?" in response.content.decode()
    assert set(states().values()) == {"failed"}
    response = browser.post(reverse(FAILED), hidden_in(response), follow=True)
    assert f"4 jobs {DONE[action][0]}." in response.content.decode()
    assert "failed" not in states().values()


@pytest.mark.parametrize("query", ["", "?queue=mail", f"?q={rows.TASK}", "?p=0"])
def test_many_are_left_to_dispatchers(as_staff, monkeypatch, query):
    monkeypatch.setattr(acting, "AT_ONCE", 2)
    made = [rows.failed(rows.job(queue_name="mail")) for _ in range(3)]
    rows.failed(rows.job(queue_name="other", task_path="another"))
    browser = as_staff("view_failedexecution", "discard_job")
    act(browser, "discard_selected", made[0], query=query, select_across=1, index=0)
    asked = Operation.objects.get()
    assert asked.expected == (3 if "=m" in query or "=t" in query else 4)
    assert set(states().values()) == {"failed"}
    assert LogEntry.objects.get().object_id == str(asked.pk)


def test_what_a_search_cannot_express_is_done_at_once(as_staff, monkeypatch):
    monkeypatch.setattr(acting, "AT_ONCE", 2)
    made = [rows.failed() for _ in range(3)]
    browser = as_staff("view_failedexecution", "discard_job")
    query = "?finished_at__gte=2026-01-01T00:00:00Z"
    act(browser, "discard_selected", made[0], query=query, select_across=1, index=0)
    assert states() == {}
    assert not Operation.objects.exists()


def hidden_in(response):
    """What the form of the page would send if its button was pressed."""
    fields = re.findall(r'name="(\w+)" value="([^"]*)"', response.content.decode())
    return {name: value for name, value in fields if name != "csrfmiddlewaretoken"}


def test_what_takes_too_long_stops_between_two_batches(as_staff, monkeypatch):
    monkeypatch.setattr(selection, "BATCH_SIZE", 2)
    monkeypatch.setattr(acting, "PATIENCE", -1)
    made = [rows.failed() for _ in range(5)]
    browser = as_staff("view_failedexecution", "retry_job")
    response = act(browser, "retry_selected", made[0], select_across=1, index=0)
    page = response.content.decode()
    assert "2 jobs retried." in page
    assert "do it again" in page
    assert sorted(states().values()) == ["failed"] * 3 + ["ready"] * 2


def test_what_somebody_else_has_got_hold_of_is_passed_over(as_staff, monkeypatch):
    first, second = rows.failed(), rows.failed()
    walk = selection.walk

    def walk_and_be_overtaken(*args):
        for ids in walk(*args):
            retry("default", first.pk)
            yield ids

    monkeypatch.setattr(selection, "walk", walk_and_be_overtaken)
    browser = as_staff("view_failedexecution", "discard_job")
    response = act(browser, "discard_selected", first, second)
    assert "1 job discarded. Passed over: 1 ready." in response.content.decode()
    assert states() == {first.pk: "ready"}


@pytest.mark.parametrize("state", ["ready", "scheduled", "blocked"])
def test_waiting_jobs_are_discarded(as_staff, state):
    first, second = (getattr(rows, state)() for _ in range(2))
    name = f"{state}execution"
    address = reverse(f"admin:robust_queue_{name}_changelist")
    chosen = {"action": "discard_selected", "_selected_action": [first.pk]}
    browser = as_staff("discard_job", f"view_{name}")
    response = browser.post(address, chosen, follow=True)
    assert "1 job discarded." in response.content.decode()
    assert states() == {second.pk: state}
    assert log() == [("ada", DELETION, "job", str(first.pk))]


def test_no_claimed_job_can_be_chosen(as_superuser):
    row = rows.claimed()
    address = reverse("admin:robust_queue_claimedexecution_changelist")
    assert "discard_selected" not in as_superuser.get(address).content.decode()
    chosen = {"action": "discard_selected", "_selected_action": [row.pk]}
    as_superuser.post(address, chosen)
    assert states() == {row.pk: "claimed"}


def test_failures_are_filtered_by_kind(as_superuser):
    error, timed_out = rows.failed(), rows.failed(kind="timed_out")
    for word, row in (("error", error), ("timed_out", timed_out)):
        response = as_superuser.get(reverse(FAILED), {"kind": word})
        assert [each.pk for each in response.context["cl"].result_list] == [row.pk]
    page = as_superuser.get(reverse(FAILED)).content.decode()
    assert '<td class="field-kind">timed out</td>' in page
    assert '<td class="field-kind">error</td>' in page
    assert (
        len(as_superuser.get(reverse(FAILED), {"kind": "x"}).context["cl"].result_list)
        == 2
    )


@pytest.mark.parametrize("action", ["retry_selected", "discard_selected"])
def test_who_may_only_view_failures_neither_sees_nor_does_it(as_staff, action):
    row = rows.failed()
    browser = as_staff("view_failedexecution")
    page = browser.get(reverse(FAILED)).content.decode()
    assert action not in page
    for fields in ({}, {"index": 0}, {"select_across": 1, "index": 0}):
        act(browser, action, row, **fields)
        assert states() == {row.pk: "failed"}


def test_who_may_change_rows_may_not_act_on_failures(as_staff):
    row = rows.failed()
    browser = as_staff("change_failedexecution", "change_job", "delete_job")
    for action in ("retry_selected", "discard_selected"):
        act(browser, action, row)
    assert FailedExecution.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize(
    ("permission", "forbidden"),
    [("discard", "retry_selected"), ("retry", "discard_selected")],
)
def test_who_may_do_one_thing_may_not_do_the_other(as_staff, permission, forbidden):
    row = rows.failed()
    browser = as_staff("view_failedexecution", f"{permission}_job")
    page = browser.get(reverse(FAILED)).content.decode()
    assert forbidden not in page
    for fields in ({}, {"index": 0}, {"select_across": 1, "index": 0}):
        act(browser, forbidden, row, **fields)
        assert states() == {row.pk: "failed"}
    assert log() == []


def test_it_is_written_down_who_retried_and_who_discarded(as_staff):
    first, second, third = (rows.failed() for _ in range(3))
    browser = as_staff("view_failedexecution", "retry_job", "discard_job", "view_job")
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
    response = as_staff("view_job").get(reverse(QUEUES))
    found = {row["queue"].name: row["queue"] for row in response.context["rows"]}
    assert found["mail"].ready == 1
    assert found["photos"].is_paused
    page = response.content.decode()
    assert "0 seconds" in page
    assert "<button" not in page.partition('id="changelist-form"')[2]


def test_queues_are_paused_and_resumed(as_staff):
    rows.ready(rows.job(queue_name="mail"))
    browser = as_staff("view_job", "pause_queue")
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


def test_a_queue_is_paused_for_a_while(as_staff):
    rows.ready(rows.job(queue_name="mail"))
    browser = as_staff("view_job", "pause_queue")
    assert 'value="60"' in browser.get(reverse(QUEUES)).content.decode()
    browser.post(reverse(QUEUES), {"pause": "mail", "length": "60"})
    left = Pause.objects.get().until - timezone.now()
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    browser.post(reverse(QUEUES), {"pause": "mail", "length": ""})
    assert Pause.objects.get().until is None
    for length in ("-5", "never"):
        field = {"pause": "photos", "length": length}
        assert browser.post(reverse(QUEUES), field).status_code == 403
    assert Pause.objects.count() == 1


MAY_CLEAR = ["view_job", "discard_job"]


def test_a_queue_is_cleared_after_a_question(as_staff):
    rows.ready(rows.job(queue_name="mail"))
    rows.scheduled(rows.job(queue_name="mail"))
    running = rows.claimed(rows.job(queue_name="mail"))
    other = rows.ready(rows.job(queue_name="photos"))
    browser = as_staff(*MAY_CLEAR)
    page = browser.get(reverse(QUEUES)).content.decode()
    assert 'name="clear" value="mail"' in page
    assert 'name="pause"' not in page
    page = browser.post(reverse(QUEUES), {"clear": "mail"}).content.decode()
    assert "1 ready, 1 scheduled and 0 blocked jobs" in page
    assert Job.objects.count() == 4
    field = {"clear": "mail", "confirmed": "yes"}
    page = browser.post(reverse(QUEUES), field, follow=True).content.decode()
    assert "Queue “mail”: 2 jobs discarded." in page
    left = set(Job.objects.values_list("pk", flat=True))
    assert left == {running.pk, other.pk}


def test_who_may_not_discard_clears_nothing(as_staff):
    rows.ready(rows.job(queue_name="mail"))
    browser = as_staff("view_job", "pause_queue", "cancel_job")
    assert 'name="clear"' not in browser.get(reverse(QUEUES)).content.decode()
    field = {"clear": "mail", "confirmed": "yes"}
    assert browser.post(reverse(QUEUES), field).status_code == 403
    assert Job.objects.count() == 1


def test_a_task_is_resumed(as_staff):
    pause = rows.task_pause()
    url = reverse("admin:robust_queue_taskpause_changelist")
    field = {"action": "resume_selected", "_selected_action": [pause.pk]}
    browser = as_staff("view_taskpause", "pause_queue")
    page = browser.post(url, field, follow=True).content.decode()
    assert "1 task resumed." in page
    assert not TaskPause.objects.exists()


def test_who_may_only_view_resumes_no_task(as_staff):
    pause = rows.task_pause()
    url = reverse("admin:robust_queue_taskpause_changelist")
    field = {"action": "resume_selected", "_selected_action": [pause.pk]}
    as_staff("view_taskpause").post(url, field)
    assert TaskPause.objects.exists()


def test_a_queue_that_cannot_be_is_refused(as_superuser):
    response = as_superuser.post(reverse(QUEUES), {"pause": "mail*"}, follow=True)
    assert "a name has no" in response.content.decode()
    assert not Pause.objects.exists()
    assert log() == []


def test_who_may_only_view_cannot_pause_or_resume(as_staff):
    rows.pause(queue_name="photos")
    browser = as_staff("view_job")
    for field in ({"pause": "mail"}, {"resume": "photos"}):
        assert browser.post(reverse(QUEUES), field).status_code == 403
    assert list(Pause.objects.values_list("pk", flat=True)) == ["photos"]


def test_who_may_not_even_view_sees_no_queues(as_staff):
    browser = as_staff("view_process", "pause_queue")
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
    assert counts[0] == counts[1] == 9


@pytest.mark.parametrize("ticked", ["nonsense", "", "\0", "9" * 5000])
def test_what_is_no_row_is_refused(as_superuser, ticked):
    row = rows.failed()
    for name in ("failedexecution", "job", "recurringtask", "taskpause"):
        url = reverse(f"admin:robust_queue_{name}_changelist")
        given = {"action": "retry_selected", "_selected_action": [ticked]}
        assert as_superuser.post(url, given).status_code in {302, 400}
    assert states() == {row.pk: "failed"}
