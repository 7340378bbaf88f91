"""Tokens of the HTTP API: made, recognised, and revoked.

A token is ``rq_``, its id, and a secret. The id finds the row, the secret proves that
the bearer was given the token; of the secret only a digest is stored.
"""

import logging
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from uuid import UUID, uuid4

from django.conf import settings
from django.db import Error, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from robust_queue.exceptions import RobustQueueError
from robust_queue.models import ApiToken
from robust_queue.reports import report
from robust_queue.scopes import Scopes
from robust_queue.stores.conflicts import retried

from .moments import as_stored

# A request does not wait for a change of the row more often than that.
USE_IS_WRITTEN_EVERY = timedelta(minutes=1)
NAME_LENGTH = 128
MOST_REQUESTS = 2**31 - 1

_SECRET_BYTES = 32
_FORM = re.compile(r"rq_(?P<id>[0-9a-f]{32})_(?P<secret>[A-Za-z0-9_-]{43})")
# What a secret is compared with where no token has the id, so that it takes as long.
_NOBODYS = "0" * 64

logger = logging.getLogger("robust_queue")


class UnknownTokenError(RobustQueueError, LookupError):
    """There is no such token, or there are several of that name."""


# ── Making ─────────────────────────────────────────────────────────────────────


@sensitive_variables("secret", "text")
def create_token(
    database: str,
    *,
    name: str,
    scopes: Scopes | Iterable[str],
    expires_at: datetime | None = None,
    created_by: str = "",
    requests_per_minute: int | None = None,
) -> tuple[ApiToken, str]:
    """Make a token, and return it with its text, which cannot be had again.

    A ValueError, such as a ScopeError, if it makes no sense.
    """
    if problem := token_name_problem(name) or token_rate_problem(requests_per_minute):
        raise ValueError(problem)
    granted = scopes if isinstance(scopes, Scopes) else Scopes.read(scopes)
    token_id, secret = uuid4(), secrets.token_urlsafe(_SECRET_BYTES)
    token = ApiToken.objects.using(database).create(
        id=token_id,
        name=name,
        digest=_digest_of(secret),
        scopes=str(granted),
        created_at=timezone.now(),
        created_by=created_by[:150],
        expires_at=_end(expires_at),
        requests_per_minute=requests_per_minute,
    )
    logger.info("API token %r (%s) was made by %r.", name, token_id, created_by)
    text = f"rq_{token_id.hex}_{secret}"
    return token, text


def token_name_problem(name: str) -> str:
    """What is wrong with the name of a token, as a sentence; empty if nothing is."""
    if not name or len(name) > NAME_LENGTH:
        return f"The name of a token has 1 to {NAME_LENGTH} characters."
    if not name.isprintable() or name != name.strip():
        return "The name of a token has no control characters, nor spaces at its ends."
    return ""


def token_rate_problem(number: int | None) -> str:
    """What is wrong with its requests per minute, likewise."""
    if number is None or 0 < number <= MOST_REQUESTS:
        return ""
    return f"Requests per minute are a whole number from 1 to {MOST_REQUESTS:,}."


def _end(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if settings.USE_TZ and timezone.is_naive(moment):
        raise ValueError(f"A moment without a time zone: {moment!r}.")
    try:
        return as_stored(moment)
    except OverflowError as error:
        raise ValueError(f"A moment is out of reach: {moment!r}.") from error


# ── Recognising ────────────────────────────────────────────────────────────────


@sensitive_variables("text", "parts")
def find_token(database: str, text: str) -> ApiToken | None:
    """The token that looks like this; None if there is none, or it is over.

    One statement; none for what cannot be a token.
    """
    parts = _FORM.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        return None
    token = _with_id(database, UUID(hex=parts["id"]))
    expected = _NOBODYS if token is None else token.digest
    is_genuine = compare_digest(expected, _digest_of(parts["secret"]))
    if token is None or not is_genuine:
        return None
    return token if token.is_valid else None


def token_by_id(database: str, token_id: UUID) -> ApiToken | None:
    """The token of this id, if it has neither expired nor been revoked."""
    token = _with_id(database, token_id)
    return token if token is not None and token.is_valid else None


def touch(database: str, token: ApiToken) -> None:
    """Write down that it was used, unless that was done a moment ago. Never raises.

    Who uses it does so whether or not anybody can write it down.
    """
    now, before = timezone.now(), token.last_used_at
    # Either way: clocks differ between hosts, and are set back.
    if before is not None and abs(now - before) < USE_IS_WRITTEN_EVERY:
        return
    # Lest it be tried again by every request, if it cannot be done.
    token.last_used_at = now
    try:
        # An error is not to spoil the transaction of whoever calls.
        with transaction.atomic(using=database):
            _rows(database).filter(pk=token.pk).update(last_used_at=now)
    except Error as error:
        report(error, "the last use of an API token was written down")


@sensitive_variables("secret")
def _digest_of(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _with_id(database: str, token_id: UUID) -> ApiToken | None:
    return _rows(database).filter(pk=token_id).first()


# ── Looking after them ─────────────────────────────────────────────────────────


def tokens(database: str) -> list[ApiToken]:
    """All of them by name, also those that are over."""
    return [*_rows(database).order_by("name", "created_at", "pk")]


def revoke_token(database: str, named: UUID | str, *, by: str = "") -> ApiToken:
    """End a token, by its id, its name or its text. To do it again changes nothing.

    An UnknownTokenError if there is none, or if several of that name are not revoked.
    """
    token = _named(database, named)
    rows = _rows(database).filter(pk=token.pk, revoked_at=None)
    if retried(database, partial(rows.update, revoked_at=timezone.now())):
        logger.info("API token %r (%s) was revoked by %r.", token.name, token.pk, by)
    token.refresh_from_db(using=database)
    return token


@sensitive_variables("named", "text")
def _named(database: str, named: UUID | str) -> ApiToken:
    # Who has found one somewhere has its text, of which nothing is told but its id.
    text = _FORM.fullmatch(named) if isinstance(named, str) else None
    if text is not None:
        named = UUID(hex=text["id"])
    token_id = _id_in(named)
    token = None if token_id is None else _with_id(database, token_id)
    return _of_name(database, str(named)) if token is None else token


def _of_name(database: str, name: str) -> ApiToken:
    rows = _rows(database).filter(name=name) if "\0" not in name else []
    found = sorted(rows, key=lambda token: (token.revoked_at is not None, token.pk))
    if not found:
        raise UnknownTokenError(f"There is no token {name!r}.")
    left = [token for token in found if token.revoked_at is None]
    if len(left) > 1:
        ids = ", ".join(str(token.pk) for token in left)
        raise UnknownTokenError(
            f"Several tokens are called {name!r}: {ids}. "
            "Give the id of the one that is meant."
        )
    return found[0]


def _id_in(named: UUID | str) -> UUID | None:
    if isinstance(named, UUID):
        return named
    try:
        return UUID(named)
    except ValueError:
        return None


def _rows(database: str) -> "QuerySet[ApiToken]":
    return ApiToken.objects.using(database)
