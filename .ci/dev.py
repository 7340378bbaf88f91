"""The developer's front door: `make help` lists what it does.

Only the standard library is imported, because this script builds the environments
everything else lives in.
"""

import sys

# An older Python would stop at a syntax error; it deserves a sentence instead.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("This needs Python 3.11 or newer: make PYTHON=/path/to/python3 ...")

import argparse
import os
import signal
import subprocess
from collections.abc import Callable
from types import FrameType

import cells
import environments
import interpreters
import packages
import parts
import runs
from cells import Cell
from checkout import ROOT, DevError, is_set, leave_out, services
from environments import BENCH, NEWEST, Environment
from parts import Part

# More than most machines have cores: tests with real processes wait most of the time.
AT_ONCE = 3
LONG_TESTS = "tests/long"
LONGEST_TEST = 6 * 60 * 60


def main() -> int:
    """Run one command and return its exit code."""
    signal.signal(signal.SIGTERM, _leave)
    # A shell starts background jobs with these ignored, which pytest would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    options = _options()
    try:
        return options.command(options)
    except (DevError, services.ServiceError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def test(options: argparse.Namespace) -> int:
    """Run the tests in every cell of the matrix."""
    chosen = cells.chosen(options.only)
    if is_set("RQ_FAST"):
        chosen = _newest(chosen)
    # Whoever says which tests are meant gets a single run of each cell.
    divided = parts.whole if options.passed_on else parts.in_parts
    ignored = f"--ignore={LONG_TESTS}"
    return _run(chosen, [ignored, *options.passed_on], divided, at_once=AT_ONCE)


def test_long(options: argparse.Namespace) -> int:
    """Run the long tests on the newest environment, one cell at a time."""
    if not (ROOT / LONG_TESTS).exists():
        raise DevError(f"There are no long tests yet: {LONG_TESTS} is missing.")
    chosen = _newest(cells.chosen(options.only))
    patiently = [f"--timeout={LONGEST_TEST}", LONG_TESTS]
    return _run(chosen, [*patiently, *options.passed_on], parts.whole, at_once=1)


def lint(options: argparse.Namespace) -> int:
    """Run every static check, also after one has failed."""
    environments.build([NEWEST], extra="lint")
    checks = ("ruff check .", "ruff format --check .", "mypy", "lint-imports")
    # mypy imports the tests' settings, and leaves without running exit handlers.
    with services.ensure_servers(["sqlite"]):
        failed = [check for check in checks if _call(NEWEST, check.split())]
    print(f"Failed: {'; '.join(failed)}" if failed else "All checks passed.")
    return int(bool(failed))


def docs(options: argparse.Namespace) -> int:
    """Build the documentation; a warning is an error."""
    environments.ensure(NEWEST, extra="docs")
    strictly = "sphinx-build -W --keep-going -b html docs docs/_build/html"
    return _call(NEWEST, strictly.split())


def screenshots(options: argparse.Namespace) -> int:
    """Take the pictures of the documentation, in the browser of the tests."""
    for missing in packages.install_missing([packages.CHROMIUM]):
        raise DevError(packages.in_words(missing))
    environments.build([NEWEST], extra="test")
    return _call(NEWEST, ["python", "docs/screenshots.py"])


def demo(options: argparse.Namespace) -> int:
    """Run the demonstration, which needs neither a server nor a compiler."""
    if packages.install_missing([packages.VENV]):
        raise DevError(packages.in_words(packages.VENV))
    environment = Environment("demo", interpreters.newest())
    environments.ensure(environment, extra="api")
    # In place of this process, so that Ctrl-C goes to the demonstration alone.
    os.chdir(ROOT)
    # CI has no other run of it, and a warning there is an error.
    strictly = ["-W", "error"] if is_set("CI") else []
    command = [environment.python, *strictly, "manage.py", "demo", *options.passed_on]
    os.execv(environment.python, command)  # noqa: S606


def bench(options: argparse.Namespace) -> int:
    """Measure speed beside the alternatives, each from PyPI."""
    if not environments.is_possible(BENCH):
        raise DevError(environments.lack(BENCH))
    for missing in packages.missing_for_benchmarks():
        leave_out(packages.in_words(missing))
    environments.build([BENCH], extra="")
    # In place of this process: it starts and stops servers of its own.
    os.chdir(ROOT)
    command = [BENCH.python, "-m", "benchmarks.run", *options.passed_on]
    os.execv(BENCH.python, command)  # noqa: S606


def _run(
    chosen: list[Cell],
    arguments: list[str],
    divided: Callable[[list[Cell]], list[Part]],
    *,
    at_once: int,
) -> int:
    possible = cells.possible(chosen)
    if not possible:
        raise DevError("No cell is left to run.")
    cells.equip(possible)
    environments.build({cell.environment for cell in possible}, extra="test")
    with services.ensure_servers({cell.database for cell in possible}):
        counts = runs.run(divided(possible), arguments, at_once=at_once)
    print(", ".join(f"{counts[word]} {word}" for word in runs.OUTCOMES))
    return int(counts["failed"] > 0)


def _newest(chosen: list[Cell]) -> list[Cell]:
    return [cell for cell in chosen if cell.environment == NEWEST]


def _call(environment: Environment, command: list[str]) -> int:
    print(f"$ {' '.join(command)}", flush=True)
    program, *arguments = command
    return subprocess.call([environment.program(program), *arguments], cwd=ROOT)


def _leave(number: int, frame: FrameType | None) -> None:
    # Once, and as an exception: servers and runs are stopped on the way out.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for function in (test, test_long, lint, docs, screenshots, demo, bench):
        name = function.__name__.replace("_", "-")
        command = commands.add_parser(name, help=function.__doc__, allow_abbrev=False)
        command.set_defaults(command=function)
        if function in (test, test_long):
            _add_only(command)
    options, passed_on = parser.parse_known_args()
    if passed_on and options.command in (lint, docs, screenshots):
        parser.error(f"unrecognized arguments: {' '.join(passed_on)}")
    options.passed_on = [argument for argument in passed_on if argument != "--"]
    return options


def _add_only(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--only",
        metavar="CELL",
        action="append",
        default=[],
        help="a cell such as py313-django61-mariadb, or a pattern such as '*-sqlite'",
    )


if __name__ == "__main__":
    sys.exit(main())
