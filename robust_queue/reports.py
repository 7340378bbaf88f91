"""Errors that nobody else would hear of: in threads, in hooks, in receivers."""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress

from django.utils.module_loading import import_string

from robust_queue.configuration import current

Handler = Callable[[BaseException], object]

logger = logging.getLogger("robust_queue")


def report(error: BaseException, doing: str) -> None:
    """Hand an error to ``on_thread_error``, or to the log. Never raises.

    ``doing`` completes the sentence "Something went wrong while …". The error is in
    flight meanwhile, which is where exception trackers look for it.
    """
    # Where memory is used up, there is none for a report either.
    with suppress(BaseException):
        if sys.exception() is error:
            _hand_over(error, doing)
            return
        try:
            raise error  # noqa: TRY301 (it is put in flight)
        except BaseException:
            _hand_over(error, doing)


def handler() -> Handler | None:
    """Return who is to be told; raises where the settings name a path to nowhere."""
    said = current().on_thread_error
    found: Handler | None = import_string(said) if isinstance(said, str) else said
    if found is None or callable(found):
        return found
    raise TypeError(f"{said!r} is {found!r}, which cannot be called.")


def _hand_over(error: BaseException, doing: str) -> None:
    try:
        told = handler()
        if told is not None:
            told(error)
            return
    except BaseException:
        logger.exception("on_thread_error could not be told of an error.")
    _log(error, doing)


def _log(error: BaseException, doing: str) -> None:
    logger.error("Something went wrong while %s.", doing, exc_info=error)
