"""What the pages of recurring tasks tell."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from robust_queue.models import RecurringTask
from tests.support import rows
from tests.support.statements import statements

from .recurring_pages import (
    ADD,
    EXECUTIONS,
    LIST,
    act,
    declared,
    filled,
    made,
    order,
    page,
    text,
)

HOSTILE = '<script>alert("x")</script>'


class TestTheList:
    def test_tells_the_schedule_in_words(self, as_superuser):
        made(schedule="30 3 * * mon-fri", timezone="Europe/Madrid")
        listed = text(as_superuser.get(reverse(LIST)))
        assert "30 3 * * mon-fri" in listed
        assert "At 03:30, Monday through Friday" in listed
        assert "Europe/<wbr>Madrid" in listed
        assert "03:30:00 CE" in listed

    def test_says_nothing_twice(self, as_superuser):
        made(schedule="every 5 minutes")
        assert text(as_superuser.get(reverse(LIST))).count("very 5 minutes") == 1

    def test_tells_the_state_and_the_last_outcome(self, as_superuser):
        made("paused one", enabled=False)
        long_ago = timezone.now() - timedelta(days=1)
        declared(key="orphan", declared_at=long_ago)
        declared(key="old", retired_at=long_ago, next_run_at=None)
        made("busy")
        for days, outcome in ((2, "succeeded"), (1, "failed"), (3, "skipped")):
            at = timezone.now() - timedelta(days=days)
            rows.recurring_execution(task_key="busy", run_at=at, outcome=outcome)
        listed = text(as_superuser.get(reverse(LIST)))
        for state in ("active", "paused", "orphaned", "retired"):
            assert f'<td class="field-shown_state">{state}</td>' in listed
        assert '<td class="field-last_outcome">failed <svg' in listed
        assert 'aria-label="Latest runs: skipped, succeeded, failed"' in listed

    def test_is_filtered(self, as_superuser):
        dynamic, paused = made("a"), made("b", enabled=False)
        static = declared()
        for query, found in (
            ({"static__exact": 1}, {static.pk}),
            ({"enabled__exact": 0}, {paused.pk}),
            ({"static__exact": 0, "enabled__exact": 1}, {dynamic.pk}),
        ):
            response = as_superuser.get(reverse(LIST), query)
            assert {row.pk for row in response.context["cl"].result_list} == found

    def test_rows_that_make_no_sense_are_shown_all_the_same(self, as_superuser):
        row = rows.recurring_task(
            schedule="whenever", timezone="Mars", arguments="{", static=False
        )
        rows.recurring_execution(task_key=row.key)
        assert "whenever" in text(as_superuser.get(reverse(LIST)))
        shown = text(as_superuser.get(page(row)))
        assert "&#x27;whenever&#x27; is no schedule" in shown
        assert "Next runs" not in shown


class TestThePage:
    def test_tells_the_next_five_runs_in_the_zone_of_the_schedule(self, as_superuser):
        row = made(schedule="0 12 * * *", timezone="Asia/Tokyo")
        response = as_superuser.get(page(row))
        shown = response.context["page"]
        assert shown["words"] == "At 12:00"
        assert shown["zone"] == "Asia/Tokyo"
        assert len(shown["runs"]) == 5
        assert all("12:00:00 JST" in each for each in shown["runs"])
        assert all(each in text(response) for each in shown["runs"])

    @override_settings(USE_TZ=False, TIME_ZONE="Europe/Madrid")
    def test_goes_by_the_zone_also_in_projects_without(self, as_superuser):
        row = made(schedule="0 12 * * *", timezone="Asia/Tokyo")
        shown = as_superuser.get(page(row)).context["page"]
        assert all("12:00:00 JST" in each for each in shown["runs"])

    def test_a_paused_one_tells_when_it_would_run(self, as_superuser):
        shown = text(as_superuser.get(page(made(enabled=False))))
        assert "Next runs, once resumed" in shown
        assert "Paused: its instants pass without a run." in shown
        assert 'value="resume"' in shown

    def test_tells_the_last_twenty_entries(self, as_superuser):
        row = made()
        noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
        for days in range(25):
            at = noon + timedelta(days=days)
            rows.recurring_execution(task_key="k", run_at=at, outcome="succeeded")
        rows.recurring_execution(task_key="another", run_at=noon + timedelta(days=99))
        history = as_superuser.get(page(row)).context["page"]["history"]
        assert len(history) == 20
        assert history[0].moment == "Fri 25 Jan 2030, 12:00:00 UTC"
        assert history[-1].moment == "Sun 6 Jan 2030, 12:00:00 UTC"

    def test_tells_how_each_has_ended(self, as_superuser):
        row = made()
        at = datetime(2030, 1, 1, tzinfo=UTC)
        failed = rows.recurring_execution(
            task_key="k",
            run_at=at,
            outcome="failed",
            started_at=at,
            finished_at=at + timedelta(seconds=7),
            exception_class="shop.errors.CardRefused",
            by_hand=True,
        )
        for days, number in ((1, 12), (2, None)):
            rows.recurring_execution(
                task_key="k",
                job_id=None,
                run_at=at - timedelta(days=days),
                skipped_until=at - timedelta(days=days) + timedelta(hours=1),
                skipped=number,
                outcome="skipped",
                reason="missed",
            )
        response = as_superuser.get(page(row))
        first, second, third = response.context["page"]["history"]
        assert (first.outcome, first.by_hand) == ("failed", True)
        assert (first.duration, first.remark) == (
            "7 seconds",
            "shop.errors.CardRefused",
        )
        assert second.remark == "missed (12 until Mon 31 Dec 2029, 01:00:00 UTC)"
        assert "missed (very many until " in third.remark
        assert reverse("admin:robust_queue_job_change", args=[failed.job_id]) in text(
            response
        )

    def test_leads_to_all_of_the_history(self, as_superuser):
        row = made("a&b")
        wanted = rows.recurring_execution(task_key="a&b")
        rows.recurring_execution(task_key="a")
        shown = as_superuser.get(page(row))
        url = shown.context["urls"]["history"]
        found = as_superuser.get(url).context["cl"].result_list
        assert [each.pk for each in found] == [wanted.pk]

    def test_costs_the_same_whatever_the_history(self, as_superuser):
        row = made()
        as_superuser.get(page(row))
        with statements() as without:
            as_superuser.get(page(row))
        for _ in range(30):
            rows.recurring_execution(task_key="k")
        with statements() as with_many:
            as_superuser.get(page(row))
        assert len(with_many) == len(without) <= 6, with_many

    def test_what_is_declared_says_so_and_is_read_only(self, as_superuser):
        row = declared(arguments='{"args":["grün"],"kwargs":{}}')
        shown = text(as_superuser.get(page(row)))
        assert "Declared in code or settings: change it there." in shown
        assert "grün" in shown
        for name in ("schedule", "task_path", "_save"):
            assert f'name="{name}"' not in shown
        assert 'value="pause"' in shown
        assert 'value="run"' in shown
        assert "deletelink" not in shown

    def test_what_nobody_declares_any_more(self, as_superuser):
        silent = timezone.now() - timedelta(hours=1)
        orphan = declared(declared_at=silent)
        shown = text(as_superuser.get(page(orphan)))
        assert "No scheduler that runs declares it" in shown
        assert "Next runs" not in shown
        retired = declared(retired_at=silent, next_run_at=None)
        shown = text(as_superuser.get(page(retired)))
        assert "it does not run, and can be deleted" in shown
        assert 'name="order"' not in shown
        assert "deletelink" in shown


def test_a_site_without_the_history_has_no_link_to_it(as_superuser, monkeypatch):
    monkeypatch.setattr("django.contrib.admin.site.is_registered", lambda model: False)
    row = made()
    rows.recurring_execution(task_key="k", job_id=uuid4())
    assert "history" not in as_superuser.get(page(row)).context["urls"]


class TestHostileContent:
    @pytest.mark.parametrize("static", [True, False])
    def test_is_inert(self, as_superuser, static):
        row = made(HOSTILE, description=HOSTILE, args=[HOSTILE])
        RecurringTask.objects.update(static=static)
        rows.recurring_execution(
            task_key=HOSTILE, reason=HOSTILE, exception_class=HOSTILE, job_id=None
        )
        pages = [
            as_superuser.get(reverse(LIST)),
            as_superuser.get(page(row)),
            as_superuser.get(reverse(EXECUTIONS)),
            act(as_superuser, "delete_selected", row),
            order(as_superuser, row, "pause", follow=True),
        ]
        for each in pages:
            assert "alert(" in text(each)
            assert "<script>alert" not in text(each)

    def test_is_inert_in_what_is_told(self, as_superuser):
        given = filled(key=HOSTILE, schedule=HOSTILE, timezone=HOSTILE)
        assert "<script>alert" not in text(as_superuser.post(reverse(ADD), given))
        given = filled(key=HOSTILE)
        response = as_superuser.post(reverse(ADD), given, follow=True)
        assert "<script>alert" not in text(response)

    def test_pages_bring_neither_script_nor_style_of_their_own(self, as_superuser):
        row = made()
        for url in (reverse(LIST), reverse(ADD), page(row)):
            shown = text(as_superuser.get(url))
            assert "<style" not in shown
            main = shown.partition('id="content-main"')[2]
            assert "style=" not in main
            assert "onclick" not in main


class TestExecutions:
    def test_tell_what_has_become_of_each_instant(self, as_superuser):
        at = datetime(2030, 1, 1, tzinfo=UTC)
        done = rows.recurring_execution(
            outcome="succeeded",
            started_at=at,
            finished_at=at + timedelta(minutes=3),
            by_hand=True,
        )
        rows.recurring_execution(
            job_id=None,
            run_at=at,
            skipped_until=at + timedelta(hours=5),
            skipped=6,
            outcome="skipped",
            reason="paused",
        )
        listed = text(as_superuser.get(reverse(EXECUTIONS)))
        assert "3 minutes" in listed
        assert ">by hand<" in listed
        assert "paused (6 until Jan. 1, 2030, 5 a.m.)" in listed
        assert reverse("admin:robust_queue_job_change", args=[done.job_id]) in listed

    def test_are_filtered_by_outcome(self, as_superuser):
        failed = rows.recurring_execution(outcome="failed")
        rows.recurring_execution(outcome="succeeded")
        response = as_superuser.get(reverse(EXECUTIONS), {"outcome__exact": "failed"})
        found = response.context["cl"].result_list
        assert [each.pk for each in found] == [failed.pk]

    def test_long_reasons_are_cut_in_the_list_alone(self, as_superuser):
        reason = "It is a long story. " * 20
        row = rows.recurring_execution(outcome="refused", reason=reason.strip())
        url = reverse("admin:robust_queue_recurringexecution_change", args=[row.pk])
        assert reason.strip() not in text(as_superuser.get(reverse(EXECUTIONS)))
        assert reason.strip() in text(as_superuser.get(url))
