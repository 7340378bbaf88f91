"""``manage.py robust_queue operations``: listing them, and stopping one."""

import json
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from robust_queue.models import Operation
from tests.support import rows

pytestmark = pytest.mark.django_db


def run(*words):
    out = StringIO()
    words = ("robust_queue", "operations", *map(str, words))
    call_command(*words, stdout=out, skip_checks=True)
    return out.getvalue()


def test_nothing_was_asked_for():
    assert run() == "Nothing was asked for lately.\n"


def test_the_list():
    asked = rows.operation(requested_by="ada", done=1_500, expected=2_000)
    rows.operation(verb="run_now", criteria='{"colour": "red"}')
    titles, latest, first = run().splitlines()
    assert titles.split()[:3] == ["OPERATION", "WHAT", "STATUS"]
    assert "run now" in latest
    assert '{"colour": "red"}' in latest
    for words in (str(asked.pk), "retry", "waiting", "1,500", "2,000", "failed jobs"):
        assert words in first


def test_as_json():
    asked = rows.operation(passed_over='{"gone": 2}')
    (found,) = json.loads(run("--json"))
    assert found["id"] == str(asked.pk)
    assert found["criteria"] == {"state": "failed"}
    assert found["reasons"] == {"gone": 2}


def test_one_is_stopped():
    asked = rows.operation()
    assert "Stopped" in run("--stop", asked.pk)
    assert Operation.objects.get().status == "stopped"
    for unknown in (asked.pk, uuid4()):
        with pytest.raises(CommandError, match="over, or unknown"):
            run("--stop", unknown)
