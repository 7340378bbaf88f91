"""Forking: what every birth has in common, and how an end is collected."""

import os
import sys
from collections.abc import Callable
from signal import SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM
from typing import NoReturn

from .connections import close_all
from .exits import ExitCode
from .notes import withheld


def fork(live: Callable[[], NoReturn]) -> int:
    """Start a process that does this and nothing else; return its number.

    Signals are withheld from it until it asks for them: it is born with the handlers
    of its parent, and a note taken there would be read by nobody.
    """
    close_all()
    # What waits in a buffer would be written by the child as well.
    sys.stdout.flush()
    sys.stderr.flush()
    with withheld(SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD):
        pid = os.fork()
        if not pid:
            live()
    return pid


def exit_code_of(pid: int) -> int | None:
    """How a child has ended, negative for a signal; None if it still runs.

    By its number, always: what tasks and modules have started is not ours.
    """
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        # Somebody else has collected it, and with it what there was to know.
        return ExitCode.BROKEN
    return os.waitstatus_to_exitcode(status) if ended else None
