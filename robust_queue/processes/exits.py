"""How processes end, as numbers and in words."""

import logging
import os
import signal
import sys
from enum import IntEnum
from typing import NoReturn


class ExitCode(IntEnum):
    """What the end of a process of Robust Queue means."""

    DONE = 0
    """Stopped as asked; everything that ran has finished and is recorded."""

    BROKEN = 1
    """Could not start, or met an error of its own."""

    LEFT_BEHIND = 3
    """Stopped as asked, but tasks still ran when the time was up: they went back."""

    UNRECORDED = 4
    """Stopped as asked, but the database could not be told what became of the jobs."""

    PRUNED = 5
    """A worker, dispatcher or scheduler that was taken for dead, and left."""

    FENCED = 6
    """A worker that could not reach the database for too long to be trusted."""

    INCOMPLETE = 7
    """A rehearsal: not all tasks could be loaded, and a start would do without them."""

    OUT_OF_MEMORY = 8
    """The process of an isolated task, which has used up its memory."""

    QUIT = 128 + signal.SIGQUIT
    """Left at once, as asked."""


_GUESSES: dict[int, str] = {
    signal.SIGKILL: "out of memory?",
    signal.SIGSEGV: "a fault in native code?",
    signal.SIGABRT: "an abort in native code?",
    signal.SIGBUS: "a fault in native code, or a full disk?",
    signal.SIGXCPU: "its time on the processor was used up?",
}
_OWN_WORDS = {
    ExitCode.DONE: "left",
    ExitCode.BROKEN: "stopped at an error of its own, see its log",
    ExitCode.LEFT_BEHIND: "was stopped while tasks still ran",
    ExitCode.PRUNED: "was taken for dead and left",
    ExitCode.FENCED: "could not reach the database for too long",
    ExitCode.INCOMPLETE: "could not load all tasks, see the log",
    ExitCode.OUT_OF_MEMORY: "has used up its memory",
    ExitCode.QUIT: "left at once, as asked",
}


def leave(code: int) -> NoReturn:
    """End this process at once: no exit handlers, which are the parent's."""
    try:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def leave_out_of_memory() -> NoReturn:
    """A task has used it up, so that not even its failure could be made up.

    The page says that it had begun.
    """
    os._exit(ExitCode.BROKEN)


def in_words(code: int) -> str:
    """An exit code as a phrase; negative ones are signals, as Python counts them."""
    if code < 0:
        return _killed(-code)
    known = next((words for own, words in _OWN_WORDS.items() if own == code), None)
    return f"exited with code {code}" + (f" ({known})" if known and code else "")


def _killed(number: int) -> str:
    # Signals for real-time use have numbers, but no names.
    names = {int(each): each.name for each in signal.Signals}
    guess = _GUESSES.get(number)
    told = f"killed by {names.get(number, f'signal {number}')}"
    return told + (f", {guess}" if guess else "")
