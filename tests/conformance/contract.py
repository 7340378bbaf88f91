"""Runs the rewritten copy of Django's tests in a process of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.recording import REPORT
from tests.conformance.rewriting import rewritten
from tests.conformance.sdist import django_tests

ROOT = Path(__file__).resolve().parents[2]
SECONDS_TO_RUN = 300

DJANGO_TEST = [
    *(sys.executable, "-m", "django", "test", "tasks", "--noinput"),
    "--settings=tests.conformance.settings",
]


@dataclass(frozen=True, slots=True)
class Report:
    """Which tests were found, what became of them, and what was printed."""

    found: list[str]
    outcomes: dict[str, str]
    output: str

    def outcome(self, name: str) -> str:
        """Return "passed", or what went wrong with that test."""
        return self.outcomes.get(name) or f"It did not run:\n{self.output}"


def run(folder: Path) -> Report:
    """Run Django's tests, rewritten into that folder; return what became of them."""
    package = folder / "tasks"
    package.mkdir()
    for name, text in rewritten(django_tests()).items():
        (package / name).write_text(text)
    return _run(folder, folder / "report.json")


def _run(folder: Path, report: Path) -> Report:
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        DJANGO_TEST,
        cwd=folder,
        env={
            **os.environ,
            REPORT: str(report),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        },
        check=False,
        timeout=SECONDS_TO_RUN,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    recorded = {"found": [], "outcomes": {}}
    if report.exists():
        recorded = json.loads(report.read_text())
    return Report(**recorded, output=done.stdout)
