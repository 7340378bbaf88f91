"""``manage.py robust_queue failures``: what has failed, briefly, the latest first."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import Any

from django.core.management.base import OutputWrapper
from django.utils import timezone

from robust_queue.lifecycle.selection import KINDS

from .changing import jobs
from .choosing import add_filters, filter_of

HELP = "list failed jobs, the latest first"

LIMIT = 20
WIDTH = 80

_WORDS = {kind.value: word.replace("_", " ") for word, kind in KINDS.items()}
_COLUMNS = (
    "job_id",
    "job__task_path",
    "kind",
    "exception_class",
    "message",
    "finished_at",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    parser.add_argument(
        "--limit",
        type=_number,
        default=LIMIT,
        metavar="N",
        help=f"how many to list at most; {LIMIT} if not said",
    )
    add_filters(parser)


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """List the failures that match."""
    wanted, limit = filter_of(options), options["limit"]
    (rows,) = wanted.rows(database)
    listed = rows.order_by("-finished_at", "-pk").values_list(*_COLUMNS)[:limit]
    shown = 0
    for shown, row in enumerate(listed, start=1):  # noqa: B007 (told at the end)
        out.write(_line(*row))
    number = rows.order_by().count() if shown == limit else shown
    if not number:
        out.write("No failed job matches.")
    elif number > shown:
        out.write(f"{shown:,} of {jobs(number, wanted.state)}: --limit shows more.")


def _line(*row: Any) -> str:
    job_id, task_path, kind, exception_class, message, moment = row
    error = f"{exception_class.rpartition('.')[2]}: {_first_line(message)}"
    # Kinds that a later version knows are shown as they are.
    word = _WORDS.get(kind, kind)
    return f"{job_id}  {_shown(moment)}  {task_path}  {word}  {error}".rstrip(": ")


def _first_line(message: str) -> str:
    line = message.strip().partition("\n")[0]
    # An exception may carry anything, also what a terminal would obey.
    plain = "".join(each if each.isprintable() else " " for each in line)
    return plain if len(plain) <= WIDTH else f"{plain[: WIDTH - 1]}…"


def _shown(moment: datetime) -> str:
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    return f"{local:%Y-%m-%d %H:%M:%S}"


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1.")
    return int(text)
