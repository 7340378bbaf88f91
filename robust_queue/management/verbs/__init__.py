"""The verbs of ``manage.py robust_queue`` that have a module of their own."""

from argparse import ArgumentParser
from typing import Any, Protocol

from django.core.management.base import OutputWrapper

from . import (
    cancel,
    clear,
    clear_queue,
    discard,
    failures,
    operations,
    pause,
    queues,
    quiet,
    recurring,
    rerun,
    resume,
    retry,
    search_index,
    stats,
    tokens,
    tune,
    why,
    workers,
)


class Verb(Protocol):
    """What such a module has."""

    @property
    def HELP(self) -> str: ...  # noqa: N802 (a constant of the module)

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, database: str, options: dict[str, Any], out: OutputWrapper) -> None:
        """Do it, or raise a CommandError."""


VERBS: dict[str, Verb] = {
    "queues": queues,
    "stats": stats,
    "pause": pause,
    "resume": resume,
    "clear-queue": clear_queue,
    "workers": workers,
    "tune": tune,
    "quiet": quiet.QUIET,
    "wake": quiet.WAKE,
    "stop": quiet.STOP,
    "recurring": recurring,
    "why": why,
    "failures": failures,
    "retry": retry,
    "rerun": rerun,
    "discard": discard,
    "cancel": cancel,
    "operations": operations,
    "clear": clear,
    "search-index": search_index,
    "tokens": tokens,
}
