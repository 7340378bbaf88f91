"""The forms of lines, and where people see them."""

import io
import json
import logging
import math
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.utils.translation import gettext_lazy

from robust_queue.compat import task_logger
from robust_queue.context import running
from robust_queue.logs import JobFilter, JSONFormatter, LineFormatter, household
from robust_queue.signals import ProcessFacts, process_started, tell
from tests.test_context import a_claim


def a_record(message="Hello, %s", *args, level=logging.INFO, exc_info=None, **extra):
    record = logging.LogRecord(
        "shop", level, __file__, 1, message, args or ("World",), exc_info
    )
    vars(record).update(extra)
    return record


class TestJson:
    def told(self, record):
        text = JSONFormatter().format(record)
        assert "\n" not in text
        return json.loads(text, parse_constant=pytest.fail)

    def test_what_every_line_has(self):
        record = a_record()
        told = self.told(record)
        moment = datetime.fromisoformat(told.pop("time"))
        assert moment.utcoffset() == timedelta(0)
        assert abs(moment.timestamp() - record.created) < 0.001
        assert told == {
            "level": "INFO",
            "logger": "shop",
            "message": "Hello, World",
            "pid": os.getpid(),
        }

    def test_the_name_of_the_process_if_it_has_one(self, monkeypatch):
        monkeypatch.setattr(household, "_names", {})
        pid = os.getpid()
        for name in ("supervisor-1", "worker-1"):
            facts = ProcessFacts(kind="Any", name=name, pid=pid, database="default")
            tell(process_started, object, process=facts)
        assert self.told(a_record())["process"] == "supervisor-1"

    def test_what_it_was_given(self):
        told = self.told(a_record(duration=0.5, customer={"id": 7}, level_of="x"))
        assert (told["duration"], told["customer"]) == (0.5, {"id": 7})

    def test_what_it_was_given_hides_nothing(self):
        told = self.told(a_record(time="noon", pid=0))
        assert told["time"] != "noon"
        assert told["pid"] == os.getpid()

    def test_the_job_in_which_it_was_made(self):
        claimed = a_claim()
        with running(claimed):
            told = self.told(a_record())
        assert told["job_id"] == str(claimed.job_id)
        assert told["task"] == "shop.tasks.send_receipt"
        assert (told["queue"], told["attempt"]) == ("mail", 2)

    def test_or_the_job_that_it_is_about(self):
        with running(a_claim()):
            told = self.told(a_record(job_id="7", task="shop.tasks.other"))
        assert (told["job_id"], told["task"]) == ("7", "shop.tasks.other")
        assert "queue" not in told

    def test_the_filter_for_other_formatters_changes_nothing(self):
        record = a_record()
        JobFilter().filter(record)
        assert "job_id" not in self.told(record)

    def test_an_exception(self):
        try:
            _ = 1 / 0
        except ZeroDivisionError:
            told = self.told(a_record(exc_info=sys.exc_info()))["exception"]
        assert told["class"] == "builtins.ZeroDivisionError"
        assert told["message"] == "division by zero"
        assert "_ = 1 / 0" in told["traceback"]

    def test_an_exception_that_was_not_there(self):
        assert "exception" not in self.told(a_record(exc_info=(None, None, None)))

    @pytest.mark.parametrize(
        "value",
        [
            object(),
            math.nan,
            {1, 2},
            {("a", "b"): 1},
            {"deep": [{"er": math.inf}]},
            gettext_lazy("Hello"),
            b"\xff",
            "\ud800\n",
            10**5000,
            uuid4(),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_it_is_never_at_a_loss(self, value):
        told = self.told(a_record(odd=value, plain=1))
        assert "odd" in told
        assert told["plain"] == 1

    def test_not_even_by_what_is_hostile(self):
        class Hostile(Exception):
            def __str__(self):
                raise RuntimeError("no words")

            __repr__ = __str__

        cycle = []
        cycle.append(cycle)
        record = a_record("%d", Hostile(), cycle=cycle, hostile=Hostile())
        record.exc_info = (Hostile, Hostile(), None)
        told = self.told(record)
        assert told["hostile"].endswith("Hostile that cannot be shown>")
        assert "Hostile" in told["exception"]["class"]
        assert told["message"].startswith("%d")
        assert "cycle" in told


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestLine:
    def test_time_to_the_millisecond_level_and_message(self):
        line = LineFormatter(stream=io.StringIO()).format(a_record())
        moment, rest = line[:23], line[23:]
        datetime.strptime(moment, "%Y-%m-%d %H:%M:%S.%f")  # noqa: DTZ007
        assert rest == " INFO Hello, World"

    def test_a_terminal_shows_the_level_in_colour(self, monkeypatch):
        monkeypatch.delenv("NO_COLOR", raising=False)
        record = a_record(level=logging.ERROR)
        line = LineFormatter(stream=Terminal()).format(record)
        assert line.endswith(" \x1b[31mERROR\x1b[0m Hello, World")
        assert record.levelname == "ERROR", "other handlers get the same record"
        assert "\x1b" not in LineFormatter(stream=Terminal()).format(a_record())

    def test_unless_nobody_wants_colours(self, monkeypatch):
        record = a_record(level=logging.ERROR)
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in LineFormatter(stream=Terminal()).format(record)

    def test_its_format_can_be_another(self):
        other = LineFormatter("{levelname}: {message}", style="{")
        assert other.format(a_record()) == "INFO: Hello, World"


class TestFilter:
    form = logging.Formatter("%(job_id)s %(task)s %(queue)s %(attempt)s")

    def test_it_tells_the_job_to_every_formatter(self):
        claimed, record = a_claim(), a_record()
        with running(claimed):
            assert JobFilter().filter(record)
        told = f"{claimed.job_id} shop.tasks.send_receipt mail 2"
        assert self.form.format(record) == told

    def test_outside_of_jobs_there_is_a_dash(self):
        record = a_record()
        JobFilter().filter(record)
        assert self.form.format(record) == "- - - -"

    def test_what_a_record_has_already_stays(self):
        record = a_record(job_id="7")
        JobFilter().filter(record)
        assert record.job_id == "7"


PROGRAM = """
import logging, django
from django.conf import settings
settings.configure(
    DEBUG={debug},
    SECRET_KEY="none",
    LOGGING={logging},
    ADMINS=["ada@example.org"],
    EMAIL_BACKEND="django.core.mail.backends.console.EmailBackend",
    INSTALLED_APPS=["robust_queue"],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3"}}}},
    TASKS={{"default": {{"BACKEND": "robust_queue.backend.RobustQueueBackend"}}}},
)
django.setup()
from robust_queue.compat import task_logger
from robust_queue.logs import show, take_over
take_over()
show({verbosity})
for logger in (logging.getLogger("robust_queue"), task_logger):
    logger.debug("detail")
    logger.info("news")
    logger.warning("trouble")
task_logger.error("failure")
logging.getLogger("django.request").warning("page")
"""


def outcome(*, debug=False, verbosity=1, logging=None):
    """What a program writes to its two streams, the first of which shows mails."""
    program = PROGRAM.format(debug=debug, verbosity=verbosity, logging=logging)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


class TestShow:
    @pytest.mark.parametrize(
        ("verbosity", "detail", "news"), [(0, 0, 0), (1, 0, 2), (2, 2, 2), (3, 2, 2)]
    )
    def test_as_much_as_was_asked_for(self, verbosity, detail, news):
        _, shown = outcome(verbosity=verbosity)
        assert shown.count("DEBUG detail\n") == detail
        assert shown.count("INFO news\n") == news
        assert shown.count("WARNING trouble\n") == 2
        assert shown.count("ERROR failure\n") == 1

    def test_each_line_once_beside_djangos_own_console(self):
        _, shown = outcome(debug=True)
        assert shown.count("news") == shown.count("trouble") == 2
        assert shown.count("failure") == 1
        assert shown.count("page") == 1

    def test_admins_still_get_mails(self):
        mails, _ = outcome()
        # The logger of the backport has no part in what Django does.
        expected = ["failure"] if task_logger.name == "django.tasks" else []
        assert re.findall("Subject: .* ERROR: (.*)", mails) == expected

    def test_where_logging_says_where_people_look_nothing_is_added(self):
        there = {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {
                "lines": {
                    "class": "logging.StreamHandler",
                    "formatter": "json",
                    "filters": ["job"],
                }
            },
            "filters": {"job": {"()": "robust_queue.logs.JobFilter"}},
            "formatters": {"json": {"()": "robust_queue.logs.JSONFormatter"}},
            "root": {"handlers": ["lines"], "level": "INFO"},
        }
        _, shown = outcome(logging=there)
        told = [json.loads(line) for line in shown.splitlines()]
        assert [each["message"] for each in told] == [
            *["news", "trouble"] * 2,
            "failure",
            "page",
        ]

    def test_formatters_may_be_named_as_classes(self):
        there = {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "l"}},
            "formatters": {"l": {"class": "robust_queue.logs.LineFormatter"}},
            "loggers": {"robust_queue": {"handlers": ["lines"], "level": "INFO"}},
        }
        _, shown = outcome(logging=there)
        # Of the queue and of its jobs: nobody has said where to look for the latter.
        assert shown.count(" INFO news\n") == 2
