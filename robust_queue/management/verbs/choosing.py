"""Which jobs a verb is about, as the command line says it."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.utils import timezone

from robust_queue.lifecycle.moments import as_stored
from robust_queue.lifecycle.selection import KINDS, Filter

# From the name of an option to that of a field.
_FIELDS = {
    "task": "task_path",
    "queue": "queue_name",
    "kind": "kind",
    "exception": "exception_class",
    "since": "since",
    "until": "until",
}

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def add_filters(parser: ArgumentParser) -> None:
    """Add the options that narrow jobs down."""
    group = parser.add_argument_group("which jobs")
    group.add_argument("--task", metavar="PATH", help="the whole path of a task")
    group.add_argument("--queue", metavar="NAME", help="the queue they are in")
    group.add_argument(
        "--kind", choices=sorted(KINDS), help="in which way they have failed"
    )
    group.add_argument(
        "--exception",
        metavar="CLASS",
        help="what was raised: a path such as shop.errors.Refused, or the end of it",
    )
    for name, words in (("since", "from this moment on"), ("until", "before that")):
        group.add_argument(
            f"--{name}",
            type=moment,
            metavar="WHEN",
            help=f"failed, or waiting since, {words}: 2026-11-18, 2026-11-18T09:30, or "
            "so long ago: 90s, 15m, 2h, 7d",
        )


def is_narrowed(options: dict[str, Any]) -> bool:
    """Does any option say which jobs are meant?"""
    return any(options[name] is not None for name in _FIELDS)


def filter_of(options: dict[str, Any]) -> Filter:
    """What the options say about jobs."""
    given = {field: options[name] for name, field in _FIELDS.items()}
    if given["kind"] is not None:
        given["kind"] = KINDS[given["kind"]]
    try:
        return Filter(state=options.get("state") or "failed", **given)
    except ValueError as error:
        raise CommandError(str(error), returncode=2) from error


def moment(text: str) -> datetime:
    """A moment as people write it, or so long ago, as the project stores it."""
    return _moment(text, direction=-1)


def coming_moment(text: str) -> datetime:
    """Likewise, or so much later."""
    return _moment(text, direction=1)


def _moment(text: str, *, direction: int) -> datetime:
    try:
        if length := re.fullmatch(r"(\d+)([smhd])", text):
            number, unit = direction * int(length[1]), _UNITS[length[2]]
            return as_stored(timezone.now() + timedelta(**{unit: number}))
        found = datetime.fromisoformat(text)
        if settings.USE_TZ and timezone.is_naive(found):
            found = timezone.make_aware(found)
        return as_stored(found)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"{text!r} is neither a moment such as 2026-11-18T09:30 nor a length of "
            "time such as 2h."
        ) from None
