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
    pause,
    queues,
    recurring,
    rerun,
    resume,
    retry,
    tune,
    why,
    workers,
)


class Verb(Protocol):
    """What such a module has."""

    HELP: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, database: str, options: dict[str, Any], out: OutputWrapper) -> None:
        """Do it, or raise a CommandError."""


VERBS: dict[str, Verb] = {
    "queues": queues,
    "pause": pause,
    "resume": resume,
    "clear-queue": clear_queue,
    "workers": workers,
    "tune": tune,
    "recurring": recurring,
    "why": why,
    "failures": failures,
    "retry": retry,
    "rerun": rerun,
    "discard": discard,
    "cancel": cancel,
    "clear": clear,
}
