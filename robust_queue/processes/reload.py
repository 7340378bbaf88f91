"""Reload in development: files are watched from the loop of the supervisor.

Django's own reloader runs the program in a thread, where neither signals nor forks are
safe. Its list of what to watch is used here, none of its threads.
"""

import logging
import os
import re
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from subprocess import DEVNULL, Popen
from tempfile import TemporaryFile
from typing import NoReturn

from django.utils.autoreload import (
    StatReloader,
    autoreload_started,
    iter_all_python_module_files,
)

from robust_queue.configuration import current
from robust_queue.registry import trouble

from . import clock
from .exits import ExitCode, in_words

logger = logging.getLogger("robust_queue")

INTERVAL = 1.0
# A start with this loads everything, leaves nothing behind, and ends. Compiled files
# are dated to the second: one of a trial might hide what is saved right after it.
TRIAL = {"ROBUST_QUEUE_DRY_RUN": "1", "PYTHONDONTWRITEBYTECODE": "1"}

# What editors leave beside a file, and tests, which no task runs.
_IGNORED = re.compile(r"^[.#]|(~|\.sw[a-z]|\.tmp)$|^tests?(_\w+)?\.py$")
_INSTALLED = {"site-packages", "dist-packages"}


class Reload:
    """Tells when to start anew: code has changed, and what it has become loads."""

    def __init__(self) -> None:
        self._files = Files()
        self._next_look = 0.0
        self._trial: Trial | None = None
        self._complaint = ""
        self._due: str | None = None

    def look(self) -> str | None:
        """The file because of which to start anew, for as long as that makes sense.

        Never waits: whether new code loads is found out by a process of its own.
        """
        changed = self._changed()
        if changed is not None:
            self._due = None
            self._try(changed)
        elif self._trial and self._trial.is_over:
            self._judge(self._trial)
        return self._due

    def give_up(self) -> None:
        """End what is under way."""
        if self._trial:
            self._trial.end()
            self._trial = None

    def _changed(self) -> Path | None:
        if clock.now() < self._next_look:
            return None
        self._next_look = clock.now() + INTERVAL
        return self._files.changed()

    def _try(self, changed: Path) -> None:
        self.give_up()
        logger.debug("%s has changed: does it load?", _shown(changed))
        try:
            self._trial = Trial(changed)
        except OSError as error:
            logger.warning("%s has changed, unheeded: %s", _shown(changed), error)

    def _judge(self, trial: "Trial") -> None:
        name, complaint = _shown(trial.cause), trial.complaint
        self.give_up()
        if complaint is None:
            self._due = name
        # New files beside a broken one are often tried in vain: it is told once.
        elif complaint != self._complaint:
            logger.error(
                "%s has changed, and cannot be loaded; what ran before goes on until "
                "the next change:\n%s",
                name,
                complaint,
            )
        self._complaint = complaint or ""


class Files:
    """What may change: loaded modules, those beside them, and what apps ask for."""

    def __init__(self) -> None:
        self._reloader = StatReloader()
        autoreload_started.send_robust(sender=self._reloader)
        for folder in _folders():
            # Workers may load what the supervisor, which is asked here, has not.
            self._reloader.watch_dir(folder, "*.py")
            self._reloader.watch_dir(folder, "*/__init__.py")
        self._dates = self._found()

    def changed(self) -> Path | None:
        """A file that is new, or has another date than at the last look."""
        dates, loaded = self._found(), iter_all_python_module_files()
        news = [
            path
            for path, date in dates.items()
            # A module that was loaded late is seen for the first time, and not new.
            if self._dates.get(path, date if path in loaded else None) != date
        ]
        # What is gone stays known: many editors remove a file and write it anew.
        self._dates |= dates
        return min(news, default=None)

    def _found(self) -> dict[Path, float]:
        found, loaded = {}, iter_all_python_module_files()
        for path in self._reloader.watched_files():
            if path not in loaded and _IGNORED.search(path.name):
                continue
            with suppress(OSError):
                status = path.stat()
                if S_ISREG(status.st_mode):
                    found[path] = status.st_mtime
        return found


class Trial:
    """A process that tries whether the program would start with its code of now."""

    def __init__(self, cause: Path) -> None:
        self.cause = cause
        self._ends = clock.now() + current().process_boot_timeout.total_seconds()
        self._told = TemporaryFile()  # noqa: SIM115 (closed at the end)
        self._process = Popen(  # noqa: S603
            _command(),
            env={**os.environ, **TRIAL},
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=self._told,
        )

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None or clock.now() > self._ends

    @property
    def complaint(self) -> str | None:
        """What was wrong; None if nothing was."""
        code = self._process.poll()
        if code == ExitCode.DONE or (code == ExitCode.INCOMPLETE and trouble()):
            return None  # or nothing that is not wrong already
        self._told.seek(0)
        told = self._told.read().decode(errors="replace").strip()
        return told or ("does not come to an end" if code is None else in_words(code))

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._told.close()


def start_anew() -> NoReturn:
    """Become the same program again, under the same number, with its code of now."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    command = _command()
    os.execv(command[0], command)  # noqa: S606


def _command() -> list[str]:
    # As it was typed: with options of the interpreter, debuggers and wrappers.
    return [sys.executable, *sys.orig_argv[1:]]


def _folders() -> set[Path]:
    """Where the project keeps its code: loaded or not, but not what is installed."""
    found: set[Path] = set()
    waiting = {path.parent for path in iter_all_python_module_files()}
    waiting -= {folder for folder in waiting if _is_installed(folder)}
    while waiting:
        folder = waiting.pop()
        found.add(folder)
        packages = {each.parent.resolve() for each in folder.glob("*/__init__.py")}
        waiting |= {each for each in packages - found if each.name != "tests"}
    return found


def _is_installed(folder: Path) -> bool:
    library = sysconfig.get_path("stdlib")
    return folder.is_relative_to(library) or not _INSTALLED.isdisjoint(folder.parts)


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
