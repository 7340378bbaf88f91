"""Schedules in words: for people, and never a reason to fail."""

import subprocess
import sys

import pytest

from robust_queue.schedules import Schedule, words


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0 12 * * mon-fri", "At 12:00, Monday through Friday"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("30 18 * * 7", "At 18:30, only on Sunday"),
        ("0 0 * * 0", "At 00:00, only on Sunday"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("59 0 0 * * 1", "At 00:00:59, only on Monday"),
        ("0 0 12 ? * mon", "At 12:00, only on Monday"),
        ("@hourly", "Every hour"),
        ("@Daily", "At 00:00"),
        ("0 0 L * *", "At 00:00, on the last day of the month"),
        ("0 0 * * L5", "At 00:00, on the last Friday of the month"),
        ("0 0 * * 5#2", "At 00:00, on the second Friday of the month"),
        ("every 90 seconds", "Every 90 seconds"),
        ("EVERY 1 HOUR", "Every hour"),
        ("every 14 days", "Every 2 weeks"),
    ],
)
def test_a_sentence(text, sentence):
    assert Schedule(text).in_words() == sentence


@pytest.mark.parametrize(
    "text", ["0 0 * * mon-fri#2", "0 0 * * 1#1,3#2", "0 0 28-L * *", "0 0 1,l * *"]
)
def test_what_words_would_get_wrong_speaks_for_itself(text):
    assert Schedule(text).in_words() == text


def test_trouble_with_words_is_no_trouble(monkeypatch):
    def fail(fields):
        raise KeyError(fields)

    monkeypatch.setattr(words, "_sentence", fail)
    assert Schedule("0 12 * * *").in_words() == "0 12 * * *"


def test_the_library_is_imported_only_when_needed():
    command = (
        "import sys; from robust_queue.schedules import Schedule; Schedule('@daily'); "
        "assert not {'cron_descriptor', 'django'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", command], check=True)
