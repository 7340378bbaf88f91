"""The list of jobs: tabs, pages, search and columns, at a price that does not grow."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from robust_queue.admin import jobs_list, tabs
from robust_queue.admin.jobs import JobAdmin
from robust_queue.models import Job
from tests.support import rows
from tests.support.statements import statements

LIST = reverse("admin:robust_queue_job_changelist")
SECRETIVE = {"redact": ["password"]}


def shown(response):
    assert response.status_code == 200
    return [row.pk for row in response.context["cl"].result_list]


def text(response):
    assert response.status_code == 200
    return response.content.decode()


def follow(browser, response, way):
    """Take a link below the list, as somebody does who turns the page."""
    return browser.get(LIST + response.context["cl"].addresses[way])


def counts(response):
    return {str(t.label): t.number for t in response.context["cl"].tabs}


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(JobAdmin, "list_per_page", 3)


@pytest.fixture
def short_reach(monkeypatch):
    monkeypatch.setattr(jobs_list, "STRETCH", 4)


def test_there_is_a_tab_for_each_state_with_how_many_are_there(as_superuser):
    for make in (rows.scheduled, rows.ready, rows.ready, rows.blocked):
        make()
    for make in (rows.claimed, rows.failed, rows.finished, rows.finished):
        make()
    assert counts(as_superuser.get(LIST)) == {
        "all": "8",
        "pending": "5",
        "scheduled": "1",
        "ready": "2",
        "blocked": "1",
        "running": "1",
        "failed": "1",
        "finished": "2",
    }


def test_without_jobs_all_tabs_are_empty(as_superuser):
    assert set(counts(as_superuser.get(LIST)).values()) == {"0"}


def test_tabs_count_no_further_than_they_tell(as_superuser, monkeypatch):
    monkeypatch.setattr(tabs, "REACH", 2)
    for _ in range(3):
        rows.ready()
    rows.failed()
    found = counts(as_superuser.get(LIST))
    assert found["ready"] == found["all"] == "2+"
    assert found["failed"] == "1"


def test_numbers_are_written_as_people_read_them():
    with override_settings(USE_THOUSAND_SEPARATOR=True, LANGUAGE_CODE="en"):
        assert tabs.shown_count(10_001) == "10,000+"
        assert tabs.shown_count(9_999) == "9,999"


def test_the_current_tab_is_told_to_those_who_listen(as_superuser):
    rows.failed()
    page = text(as_superuser.get(LIST, {"state": "failed"}))
    assert page.count('aria-current="page">failed') == 1
    assert 'href="?state=ready"' in page


def test_counts_are_of_all_jobs_and_left_out_where_only_some_are_asked_for(
    as_superuser,
):
    rows.ready()
    assert counts(as_superuser.get(LIST, {"state": "ready"}))["all"] == "1"
    for narrow in ({"queue": "mail"}, {"q": "ada"}):
        assert set(counts(as_superuser.get(LIST, narrow)).values()) == {""}


def test_pages_are_turned_down_and_up_again(as_superuser, short_pages):
    jobs = [rows.ready().pk for _ in range(8)][::-1]
    first = as_superuser.get(LIST)
    assert shown(first) == jobs[:3]
    second = follow(as_superuser, first, "older")
    assert shown(second) == jobs[3:6]
    last = follow(as_superuser, second, "older")
    assert shown(last) == jobs[6:]
    assert set(last.context["cl"].addresses) == {"newest", "newer"}
    assert shown(follow(as_superuser, last, "newer")) == jobs[3:6]
    assert shown(follow(as_superuser, second, "newer")) == jobs[:3]
    assert shown(follow(as_superuser, last, "newest")) == jobs[:3]
    assert set(first.context["cl"].addresses) == {"older"}


def test_jobs_that_come_meanwhile_shift_no_page(as_superuser, short_pages):
    jobs = [rows.ready().pk for _ in range(6)][::-1]
    first = as_superuser.get(LIST)
    newest = rows.ready().pk
    second = follow(as_superuser, first, "older")
    assert shown(second) == jobs[3:]
    # Upward there is one more than a page holds, so none is passed over.
    upward = follow(as_superuser, second, "newer")
    assert shown(upward) == jobs[:3]
    assert shown(follow(as_superuser, upward, "newer")) == [newest, *jobs[:2]]


def test_pages_keep_to_their_tab_and_links_begin_anew(as_superuser, short_pages):
    failed = [rows.failed().pk for _ in range(4) if rows.ready()][::-1]
    first = as_superuser.get(LIST, {"state": "failed"})
    assert shown(first) == failed[:3]
    second = follow(as_superuser, first, "older")
    assert shown(second) == failed[3:]
    assert 'href="?state=ready"' in text(second)


def test_deep_pages_cost_no_more_than_the_first(as_superuser, short_pages):
    for _ in range(20):
        rows.failed()
    place = Job.objects.order_by("pk")[5].pk
    as_superuser.get(LIST)
    for narrow in ({}, {"state": "failed"}, {"state": "failed", "queue": "default"}):
        with statements() as first:
            as_superuser.get(LIST, narrow)
        with statements() as deep:
            assert len(shown(as_superuser.get(LIST, {**narrow, "older": place}))) == 3
        assert len(deep) <= len(first) <= 12
        assert not [sql for sql in deep if "OFFSET" in sql and "OFFSET 4999" not in sql]


HOSTILE = ["", "x", "-1", "0" * 5000, "\0", "é", "' OR 1=1", str(UUID(int=0)), "9" * 40]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "name",
    [
        *("p", "o", "all", "older", "newer", "state", "queue", "task", "priority"),
        *("error", "worker", "recurring", "key", "q", "enqueued_from"),
        *("enqueued_until", "finished_from", "finished_until", "_facets"),
    ],
)
def test_nothing_in_an_address_breaks_the_page(as_superuser, name, value):
    rows.failed()
    assert as_superuser.get(LIST, {name: value}).status_code == 200


@pytest.mark.parametrize("day", ["0001-01-01", "1970-01-01", "9999-12-31"])
def test_days_beyond_any_clock_are_passed_over_and_told(as_superuser, day):
    job = rows.failed().pk
    for name in ("enqueued_from", "enqueued_until", "finished_from", "finished_until"):
        response = as_superuser.get(LIST, {name: day})
        assert shown(response) == [job]
        assert "errorlist" in text(response)


def test_page_numbers_and_columns_to_sort_by_mean_nothing(as_superuser, short_pages):
    jobs = [rows.ready(rows.job(priority=n)).pk for n in range(5)][::-1]
    for asked in ({"p": "2"}, {"all": ""}, {"o": "4"}, {"older": "x", "newer": "y"}):
        assert shown(as_superuser.get(LIST, asked)) == jobs[:3]


def test_columns_are_not_looked_up_through_the_whole_table(as_superuser):
    for name in ("arguments__contains", "task_path", "nonsense"):
        response = as_superuser.get(LIST, {name: "x"})
        assert response.status_code == 302
        assert response.url.endswith("?e=1")


def test_a_text_in_the_arguments_is_found(as_superuser):
    wanted = rows.ready(rows.job(arguments='{"args":["Mu\\u00f1oz"],"kwargs":{}}'))
    other = rows.ready()
    assert shown(as_superuser.get(LIST, {"q": "Muñoz"})) == [wanted.pk]
    assert shown(as_superuser.get(LIST, {"q": "ada@example.org"})) == [other.pk]
    assert shown(as_superuser.get(LIST, {"q": "%"})) == []


def test_a_search_looks_through_a_stretch_at_a_time_and_says_so(
    as_superuser, short_reach
):
    wanted = rows.ready(rows.job(arguments='{"args":["needle"],"kwargs":{}}')).pk
    for _ in range(6):
        rows.ready()
    first = as_superuser.get(LIST, {"q": "needle"})
    assert shown(first) == []
    assert "Looked through 4 jobs" in text(first)
    second = follow(as_superuser, first, "older")
    assert shown(second) == [wanted]
    assert "Looks through 4 jobs per page" in text(second)
    assert "older" not in second.context["cl"].addresses
    above = follow(as_superuser, second, "newer")
    assert shown(above) == []
    assert shown(follow(as_superuser, above, "older")) == [wanted]


def test_a_search_in_arguments_tells_nothing_to_those_who_may_not_see_them(as_staff):
    browser = as_staff("view_job", "view_arguments")
    private = '{"args":[],"kwargs":{"password":"hunter2"}}'
    job = rows.ready(rows.job(arguments=private)).pk
    with override_settings(ROBUST_QUEUE=SECRETIVE):
        answer = browser.get(LIST, {"q": "hunter2"})
        assert shown(answer) == []
        assert "text in the arguments" not in text(answer)
        assert shown(browser.get(LIST, {"q": rows.TASK})) == [job]
    with override_settings(ROBUST_QUEUE={"redact": []}):
        assert shown(browser.get(LIST, {"q": "hunter2"})) == [job]


def test_columns_tell_what_is_known(as_superuser):
    now = timezone.now()
    begun = now - timedelta(seconds=90)
    job = rows.finished(rows.job()).job
    job.finished_execution.started_at = begun
    job.finished_execution.finished_at = now
    job.finished_execution.save()
    rows.claimed()
    page = text(as_superuser.get(LIST))
    short = f"{str(job.pk)[:8]}…{str(job.pk)[-4:]}"
    assert f'<span title="{job.pk}">{short}</span>' in page
    assert "1 minute" in page
    assert '<span class="rqueue-badge">running</span>' in page


def test_most_jobs_take_less_than_a_second():
    assert jobs_list.took(timedelta(milliseconds=250)) == "250 ms"
    assert jobs_list.took(timedelta(seconds=2)) == "2 seconds"


def test_the_price_is_the_same_however_many_are_listed_and_filtered(as_superuser):
    key = uuid4().hex
    for ago in range(20):
        run_at = timezone.now() - timedelta(seconds=ago)
        job_id = rows.failed().pk
        rows.recurring_execution(task_key=key, job_id=job_id, run_at=run_at)
    as_superuser.get(LIST)
    everything = {"recurring": key, "queue": "default", "worker": "w", "q": rows.TASK}
    oldest = Job.objects.order_by("pk").first().pk
    for narrow in ({}, {"state": "failed"}, {"worker": "w"}, everything):
        for place in ({}, {"newer": oldest}):
            with statements() as sent:
                assert len(shown(as_superuser.get(LIST, narrow | place))) == 20
            assert len(sent) <= 12, sent


def test_fields_of_forms_do_not_look_through_all_arguments(as_superuser):
    job = rows.ready(rows.job(arguments='{"args":["needle"],"kwargs":{}}')).job
    named = {"app_label": "robust_queue", "model_name": "attempt", "field_name": "job"}
    url = reverse("admin:autocomplete")
    for term, found in (("needle", 0), (str(job.pk), 1)):
        answer = as_superuser.get(url, {**named, "term": term})
        assert len(answer.json()["results"]) == found
