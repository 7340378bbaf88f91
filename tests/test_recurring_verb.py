"""``manage.py robust_queue recurring``."""

import io

import pytest
from django.core.management import CommandError, call_command

from robust_queue import schedule_recurring
from robust_queue.lifecycle.install import install
from robust_queue.lifecycle.recur import recur
from robust_queue.models import Job, RecurringTask
from robust_queue.testing import drain
from tests.support.recurring import declaration, history, row
from tests.testapp.recurring_tasks import greet

pytestmark = pytest.mark.django_db(transaction=True)


def command(*words):
    out = io.StringIO()
    call_command("robust_queue", "recurring", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def scheduled():
    return schedule_recurring(
        "k", greet, schedule="0 12 * * *", args=["Ada"], timezone="Asia/Tokyo"
    )


class TestLooking:
    def test_without_anything(self):
        assert "Nothing recurs here" in command()

    def test_a_list(self, scheduled):
        install("default", [declaration(key="other")])
        head, *lines = command().splitlines()
        assert head.split() == [
            "KEY",
            "TASK",
            "SCHEDULE",
            "STATE",
            "NEXT",
            "RUN",
            "LAST",
        ]
        assert [line.split()[0] for line in lines] == ["k", "other"]
        assert "0 12 * * * Asia/Tokyo" in lines[0]
        assert "active" in lines[0]

    def test_what_became_of_the_last_run(self, scheduled):
        recur("default", now=scheduled.next_run_at)
        assert "enqueued" in command("list")

    def test_one_in_full(self, scheduled):
        recur("default", now=scheduled.next_run_at)
        said = command("show", "k")
        assert "At 12:00" in said
        assert said.count("12:00:00 JST") == 5
        assert str(history()[0].job_id) in said

    def test_one_that_there_is_not(self):
        with pytest.raises(CommandError, match="no recurring task 'k'"):
            command("show", "k")

    @pytest.mark.parametrize(
        "given",
        [
            ("0 12 * * *", "--timezone", "Asia/Tokyo"),
            ("--timezone", "Asia/Tokyo", "0 12 * * *"),
            ("--timezone=Asia/Tokyo", "0", "12", "*", "*", "*"),
        ],
    )
    def test_a_preview(self, given):
        said = command("preview", *given)
        assert said.count("12:00:00 JST") == 5
        assert "At 12:00" in said

    def test_a_preview_of_nonsense(self):
        with pytest.raises(CommandError, match="'61' is no schedule"):
            command("preview", "61")
        with pytest.raises(CommandError, match="Mars"):
            command("preview", "@daily", "--timezone", "Mars")


class TestChanging:
    def test_run(self, scheduled):
        assert "k is enqueued as job" in command("run", "k")
        assert len(drain()) == 1

    def test_pause_and_resume(self, scheduled):
        assert command("pause", "k") == "k is paused.\n"
        assert command("pause", "k") == "k was paused already.\n"
        assert row().enabled is False
        assert command("resume", "k") == "k goes on.\n"
        assert command("resume", "k") == "k was not paused.\n"

    def test_remove(self, scheduled):
        assert command("remove", "k") == "k is removed.\n"
        assert not RecurringTask.objects.exists()

    def test_what_cannot_be_done_keeps_nothing_else_from_being_done(self, scheduled):
        with pytest.raises(CommandError, match="no recurring task 'x'"):
            command("run", "x", "k")
        assert Job.objects.count() == 1

    @pytest.mark.parametrize("action", ["show", "preview", "run", "pause", "remove"])
    def test_without_a_key(self, action):
        with pytest.raises(CommandError, match=r"are required: (KEY|SCHEDULE)"):
            command(action)
