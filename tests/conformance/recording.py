"""Django's test runner, which also writes down what became of each test."""
# unittest calls its methods so.
# ruff: noqa: N802

import json
import os
from pathlib import Path
from unittest import TextTestResult

from django.test.runner import DiscoverRunner
from django.test.utils import iter_test_cases

REPORT = "RQ_CONTRACT_REPORT"
PASSED = "passed"


class Outcomes(TextTestResult):
    """Keeps the outcome of each test by name: "passed", or what went wrong."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}

    def addSuccess(self, test):
        super().addSuccess(test)
        self.outcomes.setdefault(name_of(test), PASSED)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, f"{subtest}\n{self._exc_info_to_string(err, test)}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, f"skipped: {reason}")

    def _note(self, test, problem):
        name = name_of(test)
        self.outcomes[name] = f"{self.outcomes.get(name, '')}{problem}\n"


class RecordingRunner(DiscoverRunner):
    """Writes which tests were found, and their outcomes, to a file."""

    def get_resultclass(self):
        return Outcomes

    def run_suite(self, suite, **kwargs):
        # Before the run, which takes a suite apart as it goes.
        found = [name_of(test) for test in iter_test_cases(suite)]
        result = super().run_suite(suite, **kwargs)
        report = {"found": found, "outcomes": result.outcomes}
        Path(os.environ[REPORT]).write_text(json.dumps(report))
        return result


def name_of(test):
    """The class and the method of a test; no two modules share a class."""
    return ".".join(test.id().split(".")[-2:])
