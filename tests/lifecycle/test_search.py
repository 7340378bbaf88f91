"""Searching for jobs: what is found, how it is written down, how far it looks."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from robust_queue.identifiers import new_job_id
from robust_queue.lifecycle import search_walk
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.search_walk import count_up_to, step
from robust_queue.lifecycle.search_words import SearchError
from robust_queue.models import Job
from tests.support import rows
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

NOW = timezone.now()
HOUR = timedelta(hours=1)


def found(**asked):
    search = JobSearch(**asked)
    return [job.pk for job in search.narrowed(Job.objects.order_by("pk"))]


def walked(state, **asked):
    """All that is met, and in how many steps."""
    search, newest = JobSearch(**asked), new_job_id()
    met, behind = [], None
    while True:
        some = step("default", search, state, behind=behind, newest=newest)
        met.append(some.ids)
        if some.end is None:
            return met
        behind = some.end


class TestConditions:
    @pytest.mark.parametrize(
        ("asked", "column"),
        [
            ({"queue": "mail"}, {"queue_name": "mail"}),
            ({"task": "shop.pay"}, {"task_path": "shop.pay"}),
            ({"priority": -7}, {"priority": -7}),
            ({"key": "b"}, {"concurrency_key": "a\nb\nc"}),
            ({"enqueued_until": NOW - HOUR}, {"enqueued_at": NOW - 2 * HOUR}),
            ({"enqueued_from": NOW + HOUR}, {"enqueued_at": NOW + 2 * HOUR}),
            ({"text": "shop.pay"}, {"task_path": "shop.pay"}),
        ],
    )
    def test_what_it_was_enqueued_with(self, asked, column):
        wanted = rows.ready(rows.job(**column)).pk
        rows.ready()
        assert found(**asked) == [wanted]
        assert found(state="failed", **asked) == []

    def test_how_it_has_failed(self):
        timed_out = rows.failed(kind="timed_out", exception_class="shop.Slow").pk
        usual = rows.failed().pk
        rows.ready()
        assert found(kind="timed_out") == found(error="shop.Slow") == [timed_out]
        assert found(kind="error") == [usual]
        assert found(finished_from=NOW - HOUR) == [timed_out, usual]
        assert found(finished_until=NOW - HOUR) == []

    def test_who_runs_it(self):
        worker = rows.process()
        wanted = rows.claimed(by=worker).pk
        rows.claimed()
        assert found(worker=worker.name) == found(worker=str(worker.pk)) == [wanted]

    def test_an_empty_name_is_a_name(self):
        wanted = rows.failed(exception_class="").pk
        rows.failed()
        assert found(error="") == [wanted]

    def test_arguments_are_for_those_who_may_look_for_them(self):
        wanted = rows.ready(rows.job(arguments='{"args":["caf\\u00e9"]}')).pk
        assert found(text="café", in_arguments=True) == [wanted]
        assert found(text="café") == []


class TestWalk:
    @pytest.mark.parametrize("asked", [{}, {"task": rows.TASK}, {"text": rows.TASK}])
    def test_each_job_is_met_once(self, monkeypatch, asked):
        monkeypatch.setattr(search_walk, "BATCH_SIZE", 2)
        monkeypatch.setattr(search_walk, "STRETCH", 3)
        wanted = [rows.failed().pk for _ in range(7)]
        rows.ready()
        rows.failed(rows.job(id=new_job_id(), task_path="another"))
        met = [pk for ids in walked("failed", **asked, queue="default") for pk in ids]
        assert met[:7] == wanted

    def test_what_is_in_no_index_is_looked_for_in_stretches(self, monkeypatch):
        monkeypatch.setattr(search_walk, "STRETCH", 3)
        for _ in range(7):
            rows.failed()
        wanted = rows.failed(rows.job(queue_name="mail")).pk
        assert walked("failed", queue="mail") == [[], [], [wanted]]

    def test_what_came_later_is_not_met(self):
        early, newest = rows.failed().pk, new_job_id()
        rows.failed()
        some = step("default", JobSearch(), "failed", behind=None, newest=newest)
        assert some == ([early], None)

    @pytest.mark.parametrize("by", ["id", "recurring"])
    def test_keys_lead_to_few_jobs_without_a_walk(self, monkeypatch, by):
        monkeypatch.setattr(search_walk, "STRETCH", 1)
        rows.failed()
        wanted = rows.failed().pk
        rows.failed()
        rows.recurring_execution(task_key="nightly", job_id=wanted)
        asked = {"text": str(wanted)} if by == "id" else {"recurring": "nightly"}
        assert walked("failed", queue="default", **asked) == [[wanted]]

    @pytest.mark.parametrize(
        ("asked", "is_read"),
        [({}, False), ({"text": str(uuid4())}, False), ({"queue": "mail"}, True)],
    )
    def test_jobs_are_read_only_where_they_matter(self, asked, is_read):
        with statements() as sent:
            walked("failed", **asked)
        assert ("robust_queue_jobs" in sent[-1]) is is_read

    def test_one_step_takes_two_statements(self):
        rows.failed()
        with statements() as sent:
            walked("failed", queue="default")
        assert len(sent) == 2

    def test_counting_ends_where_it_is_told_to(self, monkeypatch):
        for _ in range(3):
            rows.failed()
        newest = new_job_id()

        def count(most, **asked):
            search = JobSearch(**asked)
            return count_up_to("default", search, "failed", newest=newest, most=most)

        assert (count(3), count(2)) == (3, None)
        assert count(3, queue="default") == 3
        monkeypatch.setattr(search_walk, "STRETCH", 2)
        assert count(3) == 3, "an index tells"
        assert count(3, queue="default") is None, "each would have to be looked at"


class TestWrittenDown:
    def test_it_can_be_read_again(self):
        search = JobSearch(
            state="failed",
            priority=0,
            error="",
            enqueued_from=datetime(2026, 11, 18, 7, tzinfo=UTC),
            text="café",
            in_arguments=True,
        )
        assert JobSearch.read(search.written) == search
        assert JobSearch.read(JobSearch().written) == JobSearch()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("[]", "object"),
            ("{", "JSON"),
            ('{"colour": "red", "size": 1}', "by colour, size"),
            ('{"state": "lost"}', "state must be one of"),
            ('{"state": []}', "state must be one of"),
            ('{"kind": "bad luck"}', "kind must be one of"),
            ('{"queue": 7}', "queue must be a text"),
            ('{"task": "a\\u0000b"}', "task must be a text"),
            (f'{{"queue": "{"x" * 129}"}}', "at most 128"),
            ('{"priority": "7"}', "whole number"),
            ('{"priority": true}', "whole number"),
            ('{"priority": 40000}', "from -32768 to 32767"),
            ('{"enqueued_from": "yesterday"}', "not a moment"),
            ('{"enqueued_from": 7}', "not a moment"),
            ('{"enqueued_from": "2026-11-18T07:00"}', "no time zone"),
            ('{"finished_until": "9998-01-01T00:00Z"}', "out of reach"),
            ('{"in_arguments": "yes"}', "either true or false"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, text, problem):
        with pytest.raises(SearchError, match=problem):
            JobSearch.read(text)

    def test_in_words(self):
        search = JobSearch(
            state="failed",
            queue="mail",
            error="shop.Refused",
            enqueued_until=datetime(2026, 11, 18, tzinfo=UTC),
            text="ada",
        )
        assert search.words == (
            "failed jobs, in queue mail, with exception shop.Refused,"
            f" enqueued before {_local(search.enqueued_until)}, found by “ada”"
        )
        assert JobSearch().words == "jobs"


def _local(moment):
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M}"


def test_another_database_is_asked_everything(settings):
    """No lookup of a search goes to the database that the models are routed to."""
    settings.DATABASE_ROUTERS = [f"{__name__}.Elsewhere"]
    search = JobSearch(worker=str(uuid4()), recurring="nightly", state="claimed")
    assert not search.narrowed(Job.objects.using("default")).exists()


class Elsewhere:
    """Routes what is not told where to go to a database that is not there."""

    def db_for_read(self, model, **hints):
        return "nowhere"

    db_for_write = db_for_read
