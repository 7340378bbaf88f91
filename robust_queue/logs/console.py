"""Lines on the terminal of whoever runs the command."""

import logging
import sys

from robust_queue.compat import task_logger

from .formatters import LineFormatter

logger = logging.getLogger("robust_queue")

_LEVELS = {0: logging.WARNING, 1: logging.INFO}


def show(verbosity: int) -> None:
    """Let people see what happens, unless LOGGING says where they look for it.

    Whoever has said so for ``robust_queue`` alone looks there for jobs as well.
    """
    if logging.getLogger().handlers:
        return
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LineFormatter(stream=sys.stderr))
        _let_speak(logger, handler, verbosity)
    if not task_logger.handlers:
        for each in logger.handlers:
            _let_speak(task_logger, each, verbosity)
        _quieten_consoles()


def _let_speak(
    speaker: logging.Logger, handler: logging.Handler, verbosity: int
) -> None:
    speaker.addHandler(handler)
    if speaker.level == logging.NOTSET:
        speaker.setLevel(_LEVELS.get(verbosity, logging.DEBUG))


def _quieten_consoles() -> None:
    """In DEBUG Django has a handler that would show the same lines once more.

    They still reach its other handlers, such as the one that sends mails to admins.
    """
    for handler in logging.getLogger("django").handlers:
        if getattr(handler, "stream", None) in (sys.stderr, sys.stdout):
            handler.addFilter(_is_not_about_tasks)


def _is_not_about_tasks(record: logging.LogRecord) -> bool:
    return record.name != task_logger.name
