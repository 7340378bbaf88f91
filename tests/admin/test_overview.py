"""The overview, the bar above every page, and the database that is looked at."""

from datetime import UTC, datetime

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from robust_queue.admin import register
from robust_queue.admin.live import HEADER
from robust_queue.models import FailedExecution, Job, Pause, Rollup
from tests.support import rows
from tests.support.statements import statements

URL = "/admin/robust_queue/overview/"
QUEUES = "/admin/robust_queue/queue/"
JOBS = "/admin/robust_queue/job/"


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def a_minute(**values):
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    return rows.rollup(at=minute, **values)


def test_shows_what_happened(as_superuser):
    a_minute(finished=1234, failed=7, depth=55)
    page = text(as_superuser.get(URL))
    for shown in ("1,234", "<strong>7</strong>", "<strong>55</strong>", "Jobs per min"):
        assert shown in page


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("hour", "Jobs per minute"),
        ("day", "Jobs per quarter of an hour"),
        ("week", "Jobs per hour"),
        ("nonsense", "Jobs per minute"),
        ("\0", "Jobs per minute"),
    ],
)
def test_has_periods(as_superuser, asked, shown):
    assert shown in text(as_superuser.get(URL, {"period": asked}))


def test_shows_what_stands_where(as_superuser):
    for make in (rows.ready, rows.ready, rows.failed, rows.finished):
        make()
    page = text(as_superuser.get(URL))
    assert '?state=ready"><span class="rqueue-figure">2</span> ready' in page
    assert "builtins.ValueError" not in page
    assert "ValueError" in page


def test_warns(as_superuser):
    rows.pause(queue_name='<script>alert("x")</script>')
    page = text(as_superuser.get(URL))
    assert "No worker is alive" in page
    assert "Paused queues: &lt;script&gt;" in page


def test_costs_as_much_with_more(as_superuser):
    as_superuser.get(URL)
    a_minute()
    rows.ready()
    with statements() as for_one:
        as_superuser.get(URL)
    for n in range(20):
        a_minute(queue_name=f"q{n}")
        rows.ready(rows.job(queue_name=f"q{n}"))
        rows.failed(exception_class=f"E{n}")
        rows.process("Worker")
    with statements() as for_many:
        as_superuser.get(URL)
    assert len(for_many) <= max(len(for_one), 18), for_many


def test_those_who_may_view_jobs_see_it(as_staff):
    assert as_staff("view_process").get(URL).status_code == 403


def test_failures_and_processes_are_for_those_who_may_see_them(as_staff):
    rows.failed()
    rows.process("Worker")
    page = text(as_staff("view_job").get(URL))
    assert "ValueError" not in page
    assert "processes alive" not in page


# ── Live ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("url", [URL, QUEUES])
def test_the_script_is_given_what_changes_and_no_frame(as_superuser, url):
    part = text(as_superuser.get(url, headers={HEADER: "1"}))
    assert "content-main" in part
    assert "<html" not in part
    assert "<html" in text(as_superuser.get(url))


def test_every_part_that_changes_has_an_id(as_superuser):
    page = text(as_superuser.get(URL))
    assert page.count("data-rqueue-live") >= 3
    for part in page.split("data-rqueue-live")[:-1]:
        assert ' id="' in part.rpartition("<")[2]


# ── The bar ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("url", [URL, QUEUES, JOBS])
def test_the_bar_is_above_every_page(as_superuser, url):
    bar = text(as_superuser.get(url)).partition('class="rqueue-nav"')[2]
    bar = bar.partition("</nav>")[0]
    assert f'href="{url}" aria-current="page"' in bar
    assert bar.count("aria-current") == 1
    assert QUEUES in bar


def test_the_bar_leads_to_what_one_may_see(as_staff):
    bar = text(as_staff("view_process", "view_job").get(URL))
    bar = bar.partition('class="rqueue-nav"')[2].partition("</nav>")[0]
    assert "/processtree/" in bar
    assert "/failures/" not in bar


def test_the_index_has_pages_and_not_tables(as_superuser):
    page = text(as_superuser.get(reverse("admin:index")))
    for name in ("overview", "job", "queue", "failures", "recurringtask"):
        assert f"/admin/robust_queue/{name}/" in page
    for name in ("readyexecution", "tuning", "rollup"):
        assert f"/admin/robust_queue/{name}/" not in page


def test_tables_are_found_from_the_overview(as_superuser):
    page = text(as_superuser.get(URL))
    assert "/admin/robust_queue/readyexecution/" in page
    assert "/admin/robust_queue/rollup/" in page


# ── Databases ──────────────────────────────────────────────────────────────────


def choose(browser, database):
    return browser.post(URL, {"database": database, "choose": ""})


@pytest.mark.django_db(databases=["default", "other"])
class TestDatabases:
    def test_another_one_is_chosen_for_the_session(self, as_superuser):
        Job.objects.using("other").create(
            task_path="shop.tasks.pack",
            backend="other",
            queue_name="apart",
            arguments='{"args":[],"kwargs":{}}',
            enqueued_at=timezone.now(),
        )
        assert "pack" not in text(as_superuser.get(JOBS))
        assert choose(as_superuser, "other").status_code == 302
        page = text(as_superuser.get(JOBS))
        assert "pack" in page
        assert "<option selected>other</option>" in page
        (job,) = Job.objects.using("other").all()
        assert "pack" in text(as_superuser.get(f"{JOBS}{job.pk}/change/"))

    def test_what_is_done_is_done_there(self, as_superuser):
        choose(as_superuser, "other")
        as_superuser.post(QUEUES, {"pause": "apart"})
        assert not Pause.objects.exists()
        assert Pause.objects.using("other").get().queue_name == "apart"

    @pytest.mark.parametrize("named", ["", "nonsense", "\0"])
    def test_one_without_a_queue_is_refused(self, as_superuser, named):
        assert choose(as_superuser, named).status_code == 400
        assert text(as_superuser.get(JOBS))

    def test_one_that_was_taken_out_is_forgotten(self, as_superuser):
        session = as_superuser.session
        session["robust_queue_database"] = "gone"
        session.save()
        assert "<option selected>default</option>" in text(as_superuser.get(JOBS))


# ── Read only ──────────────────────────────────────────────────────────────────


class TestReadOnly:
    @pytest.fixture(autouse=True)
    def _read_only(self, settings):
        settings.ROBUST_QUEUE = {"admin_read_only": True}

    def test_the_bar_says_so(self, as_superuser):
        assert "for reading only" in text(as_superuser.get(URL))

    def test_there_are_no_buttons(self, as_superuser):
        rows.ready()
        page = text(as_superuser.get(QUEUES))
        assert 'name="pause"' not in page
        assert 'name="clear"' not in page

    def test_buttons_are_refused_by_the_server_too(self, as_superuser):
        rows.ready()
        for fields in ({"pause": "default"}, {"clear": "default", "confirmed": "1"}):
            assert as_superuser.post(QUEUES, fields).status_code == 403
        assert not Pause.objects.exists()

    def test_so_are_actions(self, as_superuser):
        row = rows.failed()
        url = "/admin/robust_queue/failedexecution/"
        for action in ("retry_selected", "discard_selected"):
            as_superuser.post(url, {"action": action, "_selected_action": [row.pk]})
        assert FailedExecution.objects.filter(pk=row.pk).exists()

    def test_so_are_forms(self, as_superuser):
        url = reverse("admin:robust_queue_recurringtask_add")
        assert as_superuser.get(url).status_code == 403
        assert as_superuser.post(url, {"key": "new"}).status_code == 403


# ── Other sites ────────────────────────────────────────────────────────────────


def test_all_pages_can_be_had_on_another_site():
    site = AdminSite(name="back office")
    register(site)
    ours = {
        model
        for model in admin.site._registry
        if model._meta.app_label == "robust_queue"
    }
    assert set(site._registry) == ours
    register(site)  # again changes nothing


@pytest.mark.urls("tests.admin.other_site_urls")
def test_pages_lead_around_on_that_site(as_superuser):
    rows.ready()
    for name in ("overview", "job", "queue", "processtree", "failures"):
        page = text(as_superuser.get(f"/office/robust_queue/{name}/"))
        content = page.partition('class="rqueue-nav"')[2]
        assert "/office/robust_queue/job/" in content
        assert "/admin/robust_queue/" not in content


def test_strangers_are_asked_to_log_in(db):
    assert "login" in Client().get(URL).url
    assert Rollup.objects.count() == 0
