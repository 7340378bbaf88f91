"""``manage.py robust_queue operations``: what is being done to very many jobs."""

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management import CommandError
from django.core.management.base import OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder

from robust_queue.lifecycle.operations import stop
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.search_words import SearchError
from robust_queue.models import Operation

from .tables import moment, table

HELP = "list what is done to all jobs that match, and how far it has come; or stop it"

TITLES = ("OPERATION", "WHAT", "STATUS", "DONE", "OF", "BY", "REQUESTED", "WHICH")
LIMIT = 50

_FACTS = (
    *("id", "verb", "status", "criteria", "requested_by", "requested_at", "started_at"),
    *("finished_at", "stopped_at", "expected", "matched", "done", "reasons", "problem"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may stand behind the verb."""
    parser.add_argument(
        "--stop", type=UUID, metavar="ID", help="do no more of this one"
    )
    parser.add_argument(
        "--json", action="store_true", dest="as_json", help="list them as JSON"
    )


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """List the latest, or stop one."""
    if options["stop"]:
        _stop(database, options["stop"], out)
        return
    found = list(Operation.objects.using(database).order_by("-pk")[:LIMIT])
    if options["as_json"]:
        facts = [_facts(each) for each in found]
        out.write(json.dumps(facts, cls=DjangoJSONEncoder, indent=2))
    elif not found:
        out.write("Nothing was asked for lately.")
    else:
        for line in table(TITLES, map(_row, found)):
            out.write(line)


def _stop(database: str, operation_id: UUID, out: OutputWrapper) -> None:
    if not stop(database, operation_id):
        raise CommandError(f"Operation {operation_id} is over, or unknown.")
    out.write("Stopped. What is done stays done.")


def _facts(operation: Operation) -> dict[str, Any]:
    facts = {name: getattr(operation, name) for name in _FACTS}
    return facts | {"criteria": json.loads(operation.criteria)}


def _row(operation: Operation) -> tuple[object, ...]:
    return (
        operation.pk,
        operation.verb.replace("_", " "),
        operation.status,
        operation.done,
        "?" if operation.expected is None else operation.expected,
        operation.requested_by,
        moment(operation.requested_at),
        _words(operation),
    )


def _words(operation: Operation) -> str:
    try:
        return JobSearch.read(operation.criteria).words
    except SearchError:
        # Of a later version.
        return operation.criteria
