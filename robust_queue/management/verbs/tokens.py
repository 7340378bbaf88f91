"""``manage.py robust_queue tokens``: who may use the HTTP API, and for what."""

import getpass
import json
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from django.core.management import CommandError
from django.core.management.base import OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder
from django.views.decorators.debug import sensitive_variables

from robust_queue.lifecycle.moments import in_future
from robust_queue.lifecycle.tokens import (
    MOST_REQUESTS,
    UnknownTokenError,
    create_token,
    revoke_token,
    tokens,
)
from robust_queue.models import ApiToken
from robust_queue.scopes import KNOWN

from .durations import duration
from .tables import moment, table

HELP = "list the tokens of the HTTP API, create one, or revoke some"

TITLES = ("NAME", "ID", "STATE", "SCOPES", "CREATED", "BY", "EXPIRES", "LAST USE")

_FACTS = (
    *("id", "name", "state", "created_at", "created_by", "expires_at", "last_used_at"),
    *("revoked_at", "requests_per_minute"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add what is to be done, and to what."""
    _add_json(parser, default=False)
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", title="actions", required=False
    )
    for name, (words, add) in _ACTIONS.items():
        add(actions.add_parser(name, help=words, description=words))


def _add_to_list(parser: ArgumentParser) -> None:
    _add_json(parser)


def _add_to_create(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what it is for, and who has it")
    parser.add_argument(
        "--scope",
        action="append",
        required=True,
        dest="scopes",
        metavar="SCOPE",
        help=f"what it allows; may be given several times. {KNOWN}",
    )
    parser.add_argument(
        "--expires",
        type=duration,
        metavar="AFTER",
        help="for how long it is good, such as 90d; else until it is revoked",
    )
    parser.add_argument(
        "--requests-per-minute",
        type=_number,
        metavar="N",
        help="how many requests it is good for in a minute; else as the settings say",
    )
    _add_json(parser)


def _add_to_revoke(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names",
        nargs="+",
        metavar="TOKEN",
        help="names or ids, or the tokens themselves",
    )


def _add_json(parser: ArgumentParser, **how: Any) -> None:
    # Without a default of its own an action leaves alone what was said before it.
    parser.add_argument(
        "--json",
        action="store_true",
        dest="as_json",
        help="as JSON",
        **{"default": SUPPRESS, **how},
    )


_ACTIONS = {
    "list": ("list all of them, which is what happens without a word", _add_to_list),
    "create": ("create one, and show it this once", _add_to_create),
    "revoke": ("end some of them at once", _add_to_revoke),
}


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Do it."""
    _DEEDS[options["action"] or "list"](database, options, out)


# ── Looking ────────────────────────────────────────────────────────────────────


def _list(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    found = tokens(database)
    if options["as_json"]:
        facts = [_facts(each) for each in found]
        out.write(json.dumps(facts, cls=DjangoJSONEncoder, indent=2))
    elif not found:
        out.write("There are no tokens.")
    else:
        for line in table(TITLES, map(_row, found)):
            out.write(line)


def _facts(token: ApiToken) -> dict[str, Any]:
    facts = {name: getattr(token, name) for name in _FACTS}
    return facts | {"scopes": token.scopes.split()}


def _row(token: ApiToken) -> tuple[object, ...]:
    return (
        token.name,
        token.pk,
        token.state,
        token.scopes,
        moment(token.created_at),
        token.created_by,
        moment(token.expires_at) or "never",
        moment(token.last_used_at) or "never",
    )


# ── Changing ───────────────────────────────────────────────────────────────────


@sensitive_variables("text")
def _create(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    try:
        token, text = create_token(
            database,
            name=options["name"],
            scopes=options["scopes"],
            expires_at=_end(options["expires"]),
            created_by=_operator(),
            requests_per_minute=options["requests_per_minute"],
        )
    except ValueError as error:
        raise CommandError(str(error), returncode=2) from error
    if options["as_json"]:
        facts = _facts(token) | {"token": text}
        out.write(json.dumps(facts, cls=DjangoJSONEncoder, indent=2))
        return
    end = f", until {moment(token.expires_at)}" if token.expires_at else ""
    out.write(f"{token.name} ({token.pk}) may: {token.scopes}{end}")
    out.write("This is the token. It is shown this once, and stored nowhere:")
    out.write(text)


@sensitive_variables("name")
def _revoke(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    problems = []
    for name in dict.fromkeys(options["names"]):
        try:
            token = revoke_token(database, name, by=_operator())
        except UnknownTokenError as error:
            problems.append(str(error))
        else:
            out.write(f"{token.name} ({token.pk}) is revoked.")
    if problems:
        raise CommandError("\n".join(problems))


def _end(length: timedelta | None) -> datetime | None:
    return None if length is None else in_future(length)


def _operator() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return ""  # in a container, whose user may have no name


def _number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 0 < number <= MOST_REQUESTS:
        refusal = f"{text!r} is no whole number from 1 to {MOST_REQUESTS:,}."
        raise ArgumentTypeError(refusal)
    return number


_DEEDS = {"list": _list, "create": _create, "revoke": _revoke}
