"""The process tree: who is there, who is missing, and what workers run."""

import json
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from robust_queue.lifecycle import roster as telling
from robust_queue.lifecycle.roster import roster
from robust_queue.models import ClaimedExecution, Tuning
from tests.support import rows
from tests.support.statements import statements

URL = "/admin/robust_queue/processtree/"
LONG = timedelta(hours=3)


def text(response):
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def family(silent_for=timedelta(0)):
    chief = rows.process("Supervisor", silent_for=silent_for)
    kinds = ("Worker", "Dispatcher", "Scheduler")
    return chief, [rows.process(kind, supervisor_id=chief.pk) for kind in kinds]


def test_nobody_is_there(as_staff):
    browser = as_staff("view_process")
    assert reverse("admin:robust_queue_processtree_changelist") == URL
    assert f'href="{URL}"' in text(browser.get(reverse("admin:index")))
    assert "No supervisor is there." in text(browser.get(URL))


def test_workers_outside_are_shown_apart(as_superuser):
    told = {"queues": ["pdf"], "version": "2.1"}
    name = "printer <b>7</b>"
    outside = rows.process("External", name=name, metadata=json.dumps(told))
    page = text(as_superuser.get(URL))
    assert "Workers outside" in page
    assert "printer &lt;b&gt;7&lt;/b&gt;" in page
    assert "version 2.1" in page
    assert "threads" not in page, "nobody has said how many"
    said = text(as_superuser.post(URL, {"stop": str(outside.pk)}, follow=True))
    assert "Nobody replaces it." in said
    assert Tuning.objects.get(pk=outside.pk).is_to_stop


def test_children_are_shown_with_their_supervisor(as_superuser):
    chief, children = family()
    other, _ = family()
    found = roster("default")
    assert {each.supervisor.process.pk for each in found.households} == {
        chief.pk,
        other.pk,
    }
    (mine,) = [it for it in found.households if it.supervisor.process.pk == chief.pk]
    assert {each.process.pk for each in mine.members} == {it.pk for it in children}
    assert found.orphans == []
    shown = text(as_superuser.get(URL))
    assert all(f">{each.name}</a>" in shown for each in (chief, *children))
    assert "Without a living supervisor" not in shown
    assert "missing" not in shown


def test_who_is_silent_is_missing(as_superuser):
    chief = rows.process("Supervisor")
    rows.process(supervisor_id=chief.pk, silent_for=LONG)
    (household,) = roster("default").households
    (member,) = household.members
    assert (household.supervisor.is_alive, member.is_alive) == (True, False)
    assert "missing: silent for 3 hours" in text(as_superuser.get(URL))


def test_those_without_a_living_supervisor_are_orphans(as_superuser):
    chief, children = family(silent_for=LONG)
    alone = rows.process()
    left = rows.process(supervisor_id=rows.cancellation().pk)
    found = roster("default")
    assert {it.process.pk for it in found.orphans} == {
        alone.pk,
        left.pk,
        *(each.pk for each in children),
    }
    (household,) = found.households
    assert (household.supervisor.process.pk, household.members) == (chief.pk, [])
    shown = text(as_superuser.get(URL))
    assert "Without a living supervisor" in shown
    assert "What it had started is below" in shown


def test_a_worker_tells_what_it_serves_and_runs(as_superuser):
    chief = rows.process("Supervisor")
    facts = {"queues": ["mail", "web*"], "threads": 7, "tuned": {"threads": 7}}
    worker = rows.process(supervisor_id=chief.pk, metadata=json.dumps(facts))
    row = rows.claimed(rows.job(task_path="shop.tasks.send"), by=worker)
    since = timezone.now() - timedelta(minutes=5)
    ClaimedExecution.objects.filter(pk=row.pk).update(created_at=since)
    shown = text(as_superuser.get(URL))
    assert "<bdi>mail</bdi>, <bdi>web*</bdi>" in shown
    assert "7 threads" in shown
    assert "tuned: threads" in shown
    assert f"/admin/robust_queue/job/{row.pk}/change/" in shown
    assert "shop.<wbr>tasks.<wbr>send" in shown
    assert "5 minutes" in shown


@pytest.mark.parametrize("metadata", ["", "nonsense", "[]", '{"queues": 3}'])
def test_a_worker_of_another_version_is_shown_as_far_as_it_goes(as_superuser, metadata):
    worker = rows.process(metadata=metadata)
    assert worker.name in text(as_superuser.get(URL))


def test_only_some_of_many_jobs_are_named(as_superuser, monkeypatch):
    monkeypatch.setattr(telling, "JOBS_SHOWN", 2)
    busy, calm = rows.process(), rows.process()
    made = [rows.claimed(by=busy) for _ in range(5)]
    rows.claimed(by=calm)
    found = {it.process.pk: it for it in roster("default").orphans}
    assert [run.job_id for run in found[busy.pk].runs] == [it.pk for it in made[:2]]
    assert found[busy.pk].other_runs == 3
    assert (len(found[calm.pk].runs), found[calm.pk].other_runs) == (1, 0)
    assert "and 3 others" in text(as_superuser.get(URL))


def test_only_so_many_processes_are_told(as_superuser, monkeypatch):
    monkeypatch.setattr(telling, "MOST_PROCESSES", 2)
    rows.process(silent_for=LONG)
    lately = {rows.process().pk for _ in range(2)}
    found = roster("default")
    assert found.is_cut is True
    assert {each.process.pk for each in found.orphans} == lately
    assert "There are more processes" in text(as_superuser.get(URL))


def test_jobs_are_named_to_those_who_may_see_them(as_staff):
    worker = rows.process()
    row = rows.claimed(rows.job(task_path="shop.tasks.send"), by=worker)
    shown = text(as_staff("view_process").get(URL))
    assert str(row.pk) not in shown
    assert "shop" not in shown
    assert "1 job" in shown


def test_who_has_no_permission_is_refused(as_staff):
    browser = as_staff("view_claimedexecution")
    assert browser.get(URL).status_code == 403
    assert browser.post(URL).status_code == 403


class TestButtons:
    def press(self, browser, **given):
        return text(browser.post(URL, given, follow=True))

    def wishes(self):
        return set(Tuning.objects.values_list("pk", "is_quiet", "is_to_stop"))

    def test_a_worker_is_made_quiet_woken_and_restarted(self, as_superuser):
        _, (worker, *_others) = family()
        shown = text(as_superuser.get(URL))
        assert f'name="quiet" value="{worker.pk}"' in shown
        assert 'name="wake"' not in shown
        shown = self.press(as_superuser, quiet=worker.pk)
        assert "@web:7 is asked to take nothing new." in shown
        assert "to be quiet</span>" in shown
        assert f'name="wake" value="{worker.pk}"' in shown
        assert self.wishes() == {(worker.pk, True, False)}
        self.press(as_superuser, wake=worker.pk)
        assert self.wishes() == {(worker.pk, False, False)}
        shown = self.press(as_superuser, stop=worker.pk)
        assert "It is replaced first." in shown
        assert "ends</span>" in shown
        assert self.wishes() == {(worker.pk, False, True)}
        logged = LogEntry.objects.filter(object_id=str(worker.pk))
        assert logged.count() == 3

    def test_a_worker_that_is_quiet_says_so(self, as_superuser):
        chief = rows.process("Supervisor")
        facts = {"queues": ["*"], "threads": 3, "quiet": True}
        rows.process(supervisor_id=chief.pk, metadata=json.dumps(facts))
        shown = text(as_superuser.get(URL))
        assert "quiet</span>" in shown
        assert ">Resume</button>" in shown

    def test_a_household_is_made_quiet_and_woken(self, as_superuser):
        chief, (worker, *_others) = family()
        shown = self.press(as_superuser, quiet=chief.pk)
        assert f"All workers of {chief.name} are asked to take nothing new." in shown
        assert "Resume all</button>" in shown
        assert f'name="wake" value="{worker.pk}"' not in shown, "not one by one"
        assert self.wishes() == {(chief.pk, True, False)}
        refusal = self.press(as_superuser, wake=worker.pk)
        assert "The whole household is quiet" in refusal
        self.press(as_superuser, wake=chief.pk)
        assert self.wishes() == {(chief.pk, False, False)}

    def test_a_supervisor_is_stopped_when_somebody_is_sure(self, as_superuser):
        chief, _ = family()
        asked = text(as_superuser.post(URL, {"stop": chief.pk}))
        assert f"Stop {chief.name} and all that it has started?" in asked
        assert self.wishes() == set()
        self.press(as_superuser, stop=chief.pk, confirmed="1")
        assert self.wishes() == {(chief.pk, False, True)}
        assert LogEntry.objects.get().object_id == str(chief.pk)

    def test_only_the_living_have_buttons(self, as_superuser):
        chief = rows.process("Supervisor")
        silent = rows.process(supervisor_id=chief.pk, silent_for=LONG)
        family(silent_for=LONG)
        shown = text(as_superuser.get(URL))
        assert shown.count('name="quiet"') == 1
        assert f'value="{silent.pk}"' not in shown
        assert "No live worker" in self.press(as_superuser, quiet=silent.pk)
        assert self.wishes() == set()

    @pytest.mark.parametrize("label", ["quiet", "wake", "stop"])
    def test_they_take_a_permission(self, as_staff, label):
        _, (worker, *_others) = family()
        browser = as_staff("view_process")
        assert "<button" not in text(browser.get(URL)).split("content-main")[1]
        assert browser.post(URL, {label: worker.pk}).status_code == 403
        assert self.wishes() == set()

    def test_who_has_it_may(self, as_staff):
        _, (worker, *_others) = family()
        browser = as_staff("view_process", "manage_process")
        assert browser.post(URL, {"quiet": worker.pk}).status_code == 302
        assert browser.post(URL, {"dance": worker.pk}).status_code == 403
        assert self.wishes() == {(worker.pk, True, False)}

    @pytest.mark.parametrize("named", ["", "x", "\0", "9" * 500, "<b>\u202e"])
    def test_nonsense_is_told(self, as_superuser, named):
        family()
        shown = self.press(as_superuser, stop=named)
        assert "No live worker or supervisor" in shown
        assert "\u202e" not in shown
        assert self.wishes() == set()


def test_how_much_memory_each_has(as_superuser):
    chief = rows.process("Supervisor", memory=84 * 1024**2)
    worker = rows.process(supervisor_id=chief.pk, memory=1200 * 1024**2)
    shown = text(as_superuser.get(URL))
    assert "84 MB" in shown
    assert "1,200 MB" in shown
    table = reverse("admin:robust_queue_process_changelist")
    assert "84 MB" in text(as_superuser.get(table))
    page = reverse("admin:robust_queue_process_change", args=[worker.pk])
    assert "1,200 MB" in text(as_superuser.get(page))


def test_hostile_text_is_only_text(as_superuser):
    evil = "<script>alert(1)</script>\u202egnp"
    metadata = json.dumps({"queues": [evil], "threads": 1, "tuned": {evil: 1}})
    worker = rows.process(name=evil, hostname=evil, metadata=metadata)
    rows.process(evil[:32], name="other")
    rows.claimed(rows.job(task_path=evil), by=worker)
    rows.process("Supervisor", hostname=evil)
    shown = text(as_superuser.get(URL))
    assert "<script>alert" not in shown
    assert "\ufffdgnp" in shown


def test_two_queries_however_many_processes_there_are(as_superuser):
    family()
    as_superuser.get(URL)
    with statements() as for_few:
        as_superuser.get(URL)
    for _ in range(5):
        _, (worker, *_others) = family()
        for _ in range(4):
            rows.claimed(by=worker)
    with statements() as for_many:
        as_superuser.get(URL)
    # The session and the user come before them.
    assert len(for_many) == len(for_few) == 4
