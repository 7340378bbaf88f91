"""``manage.py robust_queue search-index``: searches in arguments that find all jobs."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import CommandError
from django.core.management.base import OutputWrapper
from django.template.defaultfilters import filesizeformat

from robust_queue.lifecycle import search_index

HELP = "make or remove the index that finds jobs by their arguments, on PostgreSQL"


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    what = parser.add_mutually_exclusive_group()
    for name, words in (
        ("create", "build it, while everybody goes on working"),
        ("drop", "remove it"),
        ("status", "tell whether it is there, and how large; as without any option"),
    ):
        what.add_argument(
            f"--{name}",
            dest="what",
            action="store_const",
            const=name,
            help=words,
        )


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Do what the options say."""
    try:
        out.write(_VERBS[options["what"] or "status"](database))
    except search_index.SearchIndexError as error:
        raise CommandError(str(error)) from error


def _create(database: str) -> str:
    is_new = search_index.create(database)
    return f"{'Created' if is_new else 'There already'}: {_size(database)}."


def _drop(database: str) -> str:
    return "Removed." if search_index.drop(database) else "There was none."


def _status(database: str) -> str:
    found = search_index.status(database)
    if not found.exists:
        return "There is none: a search looks through the newest jobs. See --create."
    if not found.is_valid:
        return (
            "It is being built, or its building was interrupted: until it is whole, "
            "a search looks through the newest jobs. --create builds it anew."
        )
    return f"It is there: {_size(database)}."


def _size(database: str) -> str:
    # Spaces that do not break belong on pages.
    return filesizeformat(search_index.status(database).size).replace("\xa0", " ")


_VERBS = {"create": _create, "drop": _drop, "status": _status}
