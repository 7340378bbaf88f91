"""What is done from the list of jobs: to those that are ticked, or to all."""

import re
from html import unescape

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.test import Client
from django.urls import reverse

from robust_queue.admin import bulk, job_deeds
from robust_queue.lifecycle import search_walk
from robust_queue.lifecycle.operations import carry_out
from robust_queue.lifecycle.search import JobSearch
from robust_queue.models import Operation
from tests.support import rows
from tests.support.invariants import states
from tests.support.statements import statements

LIST = reverse("admin:robust_queue_job_changelist")
BULK = reverse("admin:robust_queue_job_bulk")
ALL = ("view_job", "retry_job", "discard_job", "cancel_job", "run_job")


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def act(browser, action, *chosen, query="", **fields):
    ticked = {"_selected_action": [getattr(r, "pk", r) for r in chosen], "index": 0}
    return browser.post(
        LIST + query, {"action": action, **ticked, **fields}, follow=True
    )


def offered(browser, query=""):
    """The actions in the menu, and the ways for everything that matches."""
    page = text(browser.get(LIST + query))
    menu = re.findall(r'<option value="(\w+_selected)"', page)
    ways = re.findall(r'href="[^"]+bulk/\?([^"]+)"', page)
    return set(menu), [unescape(each) for each in ways]


class TestTicked:
    @pytest.mark.parametrize(
        ("action", "make", "becomes", "said"),
        [
            ("retry_selected", rows.failed, {"ready"}, "2 jobs retried."),
            ("discard_selected", rows.ready, set(), "2 jobs discarded."),
            ("cancel_selected", rows.blocked, {"failed"}, "2 jobs cancelled"),
            ("run_selected", rows.scheduled, {"scheduled"}, "2 jobs are due"),
        ],
    )
    def test_it_is_done_at_once(self, as_staff, action, make, becomes, said):
        first, second, other = (make() for _ in range(3))
        before = states()[other.pk]
        assert said in text(act(as_staff(*ALL), action, first, second))
        found = states()
        assert found.pop(other.pk) == before
        assert set(found.values()) == becomes
        flag = CHANGE if becomes else DELETION
        entries = LogEntry.objects.all()
        assert {(e.object_id, e.action_flag) for e in entries} == {
            (str(first.pk), flag),
            (str(second.pk), flag),
        }

    def test_what_is_passed_over_is_named(self, as_staff):
        failed, running = rows.failed(), rows.claimed()
        page = text(act(as_staff(*ALL), "retry_selected", failed, running))
        assert "1 job retried." in page
        assert f"Job {running.pk} is running: nothing was done to it." in page
        assert [e.object_id for e in LogEntry.objects.all()] == [str(failed.pk)]

    def test_those_that_the_list_has_no_more_are_told(self, as_staff):
        """Under the tab of failed jobs, somebody was faster."""
        row = rows.ready()
        page = text(act(as_staff(*ALL), "retry_selected", row, query="?state=failed"))
        assert f"Job {row.pk} is ready: nothing was done to it." in page

    def test_many_are_not_all_named(self, as_staff, monkeypatch):
        monkeypatch.setattr(job_deeds, "NAMED", 1)
        page = text(
            act(as_staff(*ALL), "retry_selected", *(rows.ready() for _ in "abc"))
        )
        assert "Likewise 2 others." in page

    def test_no_more_than_the_ticked_ones_whatever_is_posted(self, as_staff):
        first, second = rows.failed(), rows.failed()
        act(as_staff(*ALL), "discard_selected", first, select_across=1)
        assert states() == {second.pk: "failed"}


class TestWhatIsOffered:
    @pytest.mark.parametrize(
        ("query", "actions"),
        [
            ("", {"retry", "run", "cancel", "discard"}),
            ("?state=failed", {"retry", "discard"}),
            ("?error=shop.Refused", {"retry", "discard"}),
            ("?state=scheduled", {"run", "cancel", "discard"}),
            ("?state=ready", {"cancel", "discard"}),
            ("?state=claimed", {"cancel"}),
            ("?state=finished", set()),
        ],
    )
    def test_only_what_can_be_done_under_the_tab(self, as_staff, query, actions):
        rows.failed()
        menu, ways = offered(as_staff(*ALL), query)
        assert menu == {f"{each}_selected" for each in actions}
        verbs = {re.search(r"verb=([a-z]+)", each)[1] for each in ways}
        assert verbs == actions

    def test_only_what_somebody_may_do(self, as_staff):
        row = rows.failed()
        browser = as_staff("view_job", "cancel_job")
        menu, ways = offered(browser)
        assert menu == {"cancel_selected"}
        assert ways == ["verb=cancel"]
        act(browser, "discard_selected", row)
        assert states() == {row.pk: "failed"}

    def test_nothing_where_the_admin_is_for_reading_only(self, as_superuser, settings):
        settings.ROBUST_QUEUE = {"admin_read_only": True}
        rows.failed()
        assert offered(as_superuser) == (set(), [])

    def test_the_filter_goes_along_and_the_page_does_not(self, as_staff):
        row = rows.failed()
        query = f"?state=failed&queue=default&q=x&older={row.pk}"
        _, ways = offered(as_staff("view_job", "retry_job"), query)
        assert ways == ["state=failed&queue=default&q=x&verb=retry"]


class TestAllThatMatch:
    QUERY = "?state=failed&queue=mail&verb=retry"

    @pytest.fixture
    def failed(self):
        rows.failed()
        return [rows.failed(rows.job(queue_name="mail")) for _ in range(3)]

    def test_it_is_asked_in_words(self, as_staff, failed):
        page = text(as_staff("view_job", "retry_job").get(BULK + self.QUERY))
        assert "Retry all that match?" in page
        assert "failed jobs, in queue mail" in page
        assert "<dd>3</dd>" in page
        assert not Operation.objects.exists(), "to look changes nothing"

    def test_it_is_written_down_and_carried_out(self, as_staff, failed):
        browser = as_staff("view_job", "retry_job")
        response = browser.post(BULK + self.QUERY, follow=True)
        asked = Operation.objects.get()
        assert response.redirect_chain[0][0].endswith(f"/operation/{asked.pk}/change/")
        assert "0 of 3 jobs met" in text(response)
        assert (asked.verb, asked.requested_by) == ("retry", "ada")
        assert JobSearch.read(asked.criteria) == JobSearch(state="failed", queue="mail")
        entry = LogEntry.objects.get()
        assert (entry.object_id, entry.action_flag) == (str(asked.pk), ADDITION)
        assert entry.change_message == "Retry: failed jobs, in queue mail"
        assert sorted(states().values()) == ["failed"] * 4
        carry_out("default", asked.pk)
        assert sorted(states().values()) == ["failed", *["ready"] * 3]

    def test_the_list_and_the_operation_mean_the_same(self, as_staff, failed):
        rows.failed(rows.job(queue_name="mail", task_path="shop.pay"))
        browser = as_staff(*ALL)
        query = "?queue=mail&q=shop.pay&priority=0&enqueued_from=2026-01-01"
        (listed,) = browser.get(LIST + query).context["cl"].result_list
        browser.post(f"{BULK}{query}&verb=discard")
        while carry_out("default", listed.pk):
            pass
        assert listed.pk not in states()
        assert len(states()) == 4

    def test_too_many_to_count(self, as_staff, failed, monkeypatch):
        monkeypatch.setattr(bulk, "REACH", 2)
        browser = as_staff("view_job", "retry_job")
        assert "Too many to count" in text(browser.get(BULK + self.QUERY))

    def test_a_search_in_arguments_takes_the_permission(self, as_staff, settings):
        settings.ROBUST_QUEUE = {"redact": ["password"]}
        browser = as_staff("view_job", "retry_job")
        browser.post(BULK + "?verb=retry&q=ada")
        assert JobSearch.read(Operation.objects.get().criteria) == JobSearch(text="ada")

    @pytest.mark.parametrize(
        "query",
        [
            "?verb=retry&state=ready",
            "?verb=retry&priority=x",
            "?verb=retry&state=lost",
            "?verb=retry&enqueued_from=yesterday",
            "?verb=retry&queue__in=a,b",
            "?verb=retry&q=a%00b",
        ],
    )
    def test_a_filter_that_makes_no_sense_is_refused(self, as_superuser, query):
        """A list would pass over it; here it would mean more jobs than were meant."""
        response = as_superuser.post(BULK + query)
        assert response.status_code == 302
        assert response["Location"].startswith(LIST)
        assert not Operation.objects.exists()

    def test_the_database_is_the_one_that_was_asked_about(self, as_superuser, failed):
        page = text(as_superuser.get(BULK + self.QUERY))
        assert 'name="database" value="default"' in page
        response = as_superuser.post(BULK + self.QUERY, {"database": "other"})
        assert response["Location"].startswith(LIST)
        assert not Operation.objects.exists()

    def test_who_may_not_is_refused(self, as_staff, failed):
        browser = as_staff("view_job", "cancel_job", "discard_job")
        assert browser.get(BULK + self.QUERY).status_code == 403
        assert browser.post(BULK + self.QUERY).status_code == 403
        assert not Operation.objects.exists()

    def test_who_may_not_look_is_refused(self, as_staff, failed):
        assert as_staff("retry_job").post(BULK + self.QUERY).status_code == 403

    def test_no_verb_at_all(self, as_superuser):
        assert as_superuser.post(BULK).status_code == 400
        assert as_superuser.post(BULK + "?verb=eat").status_code == 400

    def test_a_form_of_somebody_else_is_refused(self, as_superuser, failed):
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = as_superuser.cookies
        assert strict.post(BULK + self.QUERY).status_code == 403

    def test_the_price_does_not_grow(self, as_superuser, failed, monkeypatch):
        monkeypatch.setattr(search_walk, "STRETCH", 2)
        as_superuser.get(BULK + self.QUERY)
        with statements() as sent:
            as_superuser.get(BULK + self.QUERY)
        assert len(sent) <= 4, "who it is, twice; the newest job; a stretch"
