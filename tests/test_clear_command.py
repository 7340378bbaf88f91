"""``manage.py robust_queue clear``, as operators use it."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from robust_queue.management.verbs.durations import duration
from tests.support.ended import DAY, ended
from tests.support.invariants import states
from tests.testapp import kept_tasks

pytestmark = pytest.mark.django_db

LONG = kept_tasks.keep_for_long.module_path


class Terminal(StringIO):
    def isatty(self):
        return True


def command(*arguments, out=None):
    out = out or StringIO()
    call_command("robust_queue", *arguments, stdout=out, skip_checks=True)
    return out.getvalue()


def test_by_itself_it_does_what_the_dispatcher_does():
    ended("finished", ago=2 * DAY, count=1_200)
    ended("failed", ago=2 * DAY, kind="expired")
    kept = [*ended("finished", ago=2 * DAY, task_path=LONG), *ended("failed", ago=DAY)]
    assert command("clear") == "1,200 finished and 1 failed jobs cleared.\n"
    assert set(states()) == set(kept)


@pytest.mark.parametrize("state", ["finished", "failed"])
def test_only_what_was_asked_for(state):
    both = {
        "finished": ended("finished", ago=2 * DAY),
        "failed": ended("failed", ago=2 * DAY, kind="cancelled"),
    }
    assert command("clear", f"--{state}") == f"1 {state} job cleared.\n"
    assert list(both.pop(state)) != list(states())
    assert set(states()) == {each for ids in both.values() for each in ids}


def test_older_than_goes_before_what_tasks_say():
    ended("finished", ago=2 * DAY, task_path=LONG)
    (young,) = ended("finished", ago=DAY)
    told = command("clear", "--finished", "--older-than", "36h")
    assert told == "1 finished job cleared.\n"
    assert set(states()) == {young}


def test_older_than_asks_what_it_is_about():
    ended("failed", ago=2 * DAY)
    with pytest.raises(CommandError, match="--finished, --failed or both"):
        command("clear", "--older-than", "1d")
    assert len(states()) == 1


def test_of_one_task():
    ended("finished", ago=2 * DAY)
    (other,) = ended("finished", ago=2 * DAY, task_path="a.b")
    command("clear", "--task", "tests.testapp.tasks.note", "--batch-size", "1")
    assert set(states()) == {other}


@pytest.mark.parametrize(
    "arguments", [("clear", "--dry-run"), ("--dry-run", "clear")], ids=" ".join
)
def test_a_rehearsal_deletes_nothing_wherever_it_is_asked_for(arguments):
    ended("finished", ago=2 * DAY, count=2)
    told = command(*arguments)
    assert told == "2 finished and 0 failed jobs would be cleared.\n"
    assert len(states()) == 2


def test_progress_on_a_terminal_only():
    ended("finished", ago=2 * DAY, count=3)
    out = Terminal()
    told = command("clear", "--finished", "--batch-size", "2", out=out)
    assert "\r2 finished …" in told
    assert told.endswith("\r3 finished …\r3 finished jobs cleared.\n")


@pytest.mark.parametrize("size", ["0", "-1", "many", "5001"])
def test_a_batch_that_makes_no_sense_is_refused(size):
    with pytest.raises(CommandError, match="from 1 to 5,000"):
        command("clear", "--batch-size", size)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0", 0),
        ("1.5h", 5400),
        ("45s", 45),
        ("30m", 1800),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("1d12h", 129_600),
    ],
)
def test_durations(text, seconds):
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "d", "1 d", "-1", "1y", "soon", "٣d", "1e9d"])
def test_no_durations(text):
    with pytest.raises(CommandError, match="is no duration"):
        command("clear", "--finished", "--older-than", text)


@pytest.mark.parametrize("text", ["40000d", "99999999999999999w"])
def test_durations_out_of_reach(text):
    with pytest.raises(CommandError, match="out of reach"):
        command("clear", "--finished", f"--older-than={text}")
