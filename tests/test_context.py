"""What surrounds a task: which job it is, and how its enqueuer spoke and told time."""

import asyncio
import contextvars
import json
from datetime import UTC, timedelta, tzinfo
from datetime import timezone as fixed_offset
from threading import Thread
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone, translation

import robust_queue
from robust_queue.context import CurrentJob, current_job, running
from robust_queue.lifecycle.claim import claim
from robust_queue.models import Job
from robust_queue.stores.rows import Claim
from tests.settings import TASKS
from tests.support.processes import a_process
from tests.testapp.tasks import note

MADRID = ZoneInfo("Europe/Madrid")


def a_claim(**recorded):
    now = timezone.now()
    return Claim(
        job_id=uuid4(),
        token=uuid4(),
        process_id=uuid4(),
        attempts=2,
        task_path="shop.tasks.send_receipt",
        backend="default",
        queue_name="mail",
        priority=0,
        arguments="[[],{}]",
        enqueued_at=now,
        run_after=None,
        metadata=json.dumps(recorded) if recorded else "",
    )


def locale():
    return translation.get_language(), str(timezone.get_current_timezone())


class TestCurrentJob:
    def test_there_is_none_outside_of_tasks(self):
        assert robust_queue.current_job() is None

    def test_it_is_known_while_it_runs(self):
        claimed = a_claim()
        with running(claimed) as job:
            assert current_job() is job
            assert job == CurrentJob(
                id=str(claimed.job_id),
                task="shop.tasks.send_receipt",
                queue="mail",
                attempt=2,
            )
        assert current_job() is None

    def test_it_is_forgotten_whatever_the_task_raises(self):
        with pytest.raises(SystemExit), running(a_claim()):
            raise SystemExit
        assert current_job() is None

    def test_one_inside_another_gives_way_to_it_again(self):
        with running(a_claim()) as outer:
            with running(a_claim()) as inner:
                assert current_job() is inner
            assert current_job() is outer

    def test_another_thread_has_none_of_it(self):
        found = []
        with running(a_claim()):
            thread = Thread(target=lambda: found.append(current_job()))
            thread.start()
            thread.join()
        assert found == [None]

    def test_coroutines_side_by_side_have_one_each(self):
        async def task(claimed):
            with running(claimed) as job:
                await asyncio.sleep(0)
                there = await sync_to_async(current_job)()
                return current_job() is job is there

        async def both():
            return await asyncio.gather(task(a_claim()), task(a_claim()))

        assert asyncio.run(both()) == [True, True]

    def test_a_copied_context_leaves_the_original_alone(self):
        def run():
            with running(a_claim(language="de", time_zone="Europe/Madrid")):
                return locale()

        assert contextvars.copy_context().run(run) == ("de", "Europe/Madrid")
        assert current_job() is None
        assert locale() == ("en-us", "UTC")


class TestLocale:
    @pytest.fixture(autouse=True)
    def as_the_settings_say(self):
        translation.deactivate()
        timezone.deactivate()
        yield
        translation.deactivate()
        timezone.deactivate()

    @pytest.mark.parametrize(
        ("recorded", "found"),
        [
            ({}, ("en-us", "UTC")),
            ({"language": "de"}, ("de", "UTC")),
            ({"language": "de-at"}, ("de-at", "UTC")),
            ({"time_zone": "Europe/Madrid"}, ("en-us", "Europe/Madrid")),
            ({"time_zone": 330}, ("en-us", "UTC+05:30")),
            ({"time_zone": -0.5}, ("en-us", "UTC-00:00:30")),
            (
                {"language": "es", "time_zone": "America/Lima"},
                ("es", "America/Lima"),
            ),
            ({"something": "else"}, ("en-us", "UTC")),
        ],
    )
    def test_what_was_recorded_holds_while_the_task_runs(self, recorded, found):
        with running(a_claim(**recorded)):
            assert locale() == found
        assert locale() == ("en-us", "UTC")

    def test_what_a_task_activates_is_its_own(self):
        with running(a_claim()):
            translation.activate("fr")
            timezone.activate(MADRID)
        assert locale() == ("en-us", "UTC")

    def test_what_was_active_before_is_active_again(self):
        translation.activate("fr")
        timezone.activate(MADRID)
        with running(a_claim(language="de", time_zone=60)):
            assert locale() == ("de", "UTC+01:00")
        assert locale() == ("fr", "Europe/Madrid")

    def test_also_if_that_was_no_language_at_all(self):
        translation.deactivate_all()
        with running(a_claim(language="de")):
            pass
        assert translation.get_language() is None

    def test_whoever_had_chosen_nothing_follows_the_settings_again(self, settings):
        with running(a_claim(language="de", time_zone="Europe/Madrid")):
            pass
        settings.LANGUAGE_CODE = "it"
        settings.TIME_ZONE = "Asia/Tokyo"
        assert locale() == ("it", "Asia/Tokyo")

    @pytest.mark.parametrize(
        ("recorded", "told"),
        [
            ({"language": "tlh"}, "the language of its enqueuer, 'tlh', which"),
            ({"language": 3}, "the language of its enqueuer, 3, which"),
            ({"time_zone": "Mars/Olympus"}, "the time zone of its enqueuer, 'Mars/"),
            ({"time_zone": "../etc/passwd"}, "the time zone of its enqueuer"),
            ({"time_zone": "Europe"}, "the time zone of its enqueuer, 'Europe'"),
            ({"time_zone": 10**9}, "the time zone of its enqueuer, 1000000000,"),
            ({"time_zone": [1]}, "the time zone of its enqueuer, [1], which"),
        ],
    )
    def test_what_is_not_known_here_is_told_and_left_out(self, recorded, told, caplog):
        claimed = a_claim(**recorded)
        with running(claimed):
            assert locale() == ("en-us", "UTC")
        (line,) = caplog.records
        assert line.levelname == "WARNING"
        assert f"shop.tasks.send_receipt runs without {told}" in line.getMessage()
        assert str(claimed.job_id) in line.getMessage()

    @pytest.mark.parametrize("text", ["{", "[1]", "null", "3"])
    def test_metadata_of_somebody_else_does_no_harm(self, text, caplog):
        claimed = a_claim()
        object.__setattr__(claimed, "metadata", text)
        with running(claimed):
            assert locale() == ("en-us", "UTC")
        assert caplog.records == []


@pytest.mark.django_db
class TestEnqueuer:
    @pytest.fixture
    def asked_for(self, settings):
        def ask(**options):
            entry = {**TASKS["default"], "OPTIONS": options}
            settings.TASKS = {**TASKS, "default": entry}

        return ask

    @pytest.fixture(autouse=True)
    def abroad(self):
        with translation.override("de"), timezone.override(MADRID):
            yield

    def recorded(self):
        text = Job.objects.get(pk=note.enqueue().id).metadata
        (claimed,) = claim("default", process_id=a_process())
        assert claimed.metadata == text
        return text

    def test_nothing_is_recorded_unless_asked_for(self):
        assert self.recorded() == ""

    def test_both(self, asked_for):
        asked_for(RESTORE_LANGUAGE=True, RESTORE_TIME_ZONE=True)
        assert self.recorded() == '{"language":"de","time_zone":"Europe/Madrid"}'

    def test_one_of_them(self, asked_for):
        asked_for(RESTORE_TIME_ZONE=True)
        assert self.recorded() == '{"time_zone":"Europe/Madrid"}'

    def test_by_the_setting(self, settings):
        settings.ROBUST_QUEUE = {"restore_language": True}
        assert self.recorded() == '{"language":"de"}'

    @pytest.mark.parametrize(
        ("zone", "text"),
        [
            (fixed_offset(timedelta(hours=-3)), '{"time_zone":-180}'),
            (fixed_offset(timedelta(seconds=30)), '{"time_zone":0.5}'),
            (UTC, '{"time_zone":0}'),
            (ZoneInfo("UTC"), '{"time_zone":"UTC"}'),
        ],
    )
    def test_zones_have_a_name_or_an_offset(self, asked_for, zone, text):
        asked_for(RESTORE_TIME_ZONE=True)
        with timezone.override(zone):
            assert self.recorded() == text

    def test_no_language_and_a_zone_without_a_name_are_left_out(self, asked_for):
        asked_for(RESTORE_LANGUAGE=True, RESTORE_TIME_ZONE=True)
        with timezone.override(Nameless()):
            translation.deactivate_all()
            assert self.recorded() == ""


class Nameless(tzinfo):
    def utcoffset(self, moment):
        return timedelta(0)

    dst = utcoffset
