"""Who asks, and what they may do: a token, staff with a session, or a worker."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables
from ninja.utils import check_csrf

from robust_queue.aliases import backends, database_named
from robust_queue.configuration import current
from robust_queue.exceptions import NoQueueError
from robust_queue.lifecycle.enlist import ExternalWorker, external_worker
from robust_queue.lifecycle.tokens import find_token, token_by_id, touch
from robust_queue.models import ApiToken
from robust_queue.scopes import NAMED, Scopes
from robust_queue.tracebacks import in_one_line

from . import pace
from .deeds import Deed
from .problems import MOST_ERRORS, Problem, forbidden, not_found, unauthenticated
from .secrets import is_secret_of

logger = logging.getLogger("robust_queue.api")

# Of a parameter that nobody knows.
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever has sent a request: by a token, or as a user."""

    token: ApiToken | None = None
    user: Any = None

    @property
    def name(self) -> str:
        """As logs and operations name them."""
        if self.token is not None:
            return f"token {self.token.name}"
        return str(self.user.get_username())

    @property
    def identity(self) -> str:
        """What tells them from all others."""
        asker = self.user if self.token is None else self.token
        return f"{asker._meta.label_lower} {asker.pk}"

    @property
    def scopes(self) -> Scopes:
        return self.token.granted if self.token else Scopes()

    def may(self, deed: Deed, name: str = "") -> bool:
        """May they do that, with the task or queue of that name?"""
        if self.token is not None:
            return self.scopes.allows(deed.scope, name)
        if deed.permissions is None or (deed.changes and current().admin_read_only):
            return False
        asked = (f"robust_queue.{each}" for each in deed.permissions)
        return all(self.user.has_perm(each) for each in asked)

    def must(self, deed: Deed, name: str = "") -> None:
        """Refuse the request unless they may."""
        if not self.may(deed, name):
            raise forbidden(_what_it_takes(deed, name))


class Gate:
    """Lets requests in to one operation, with the parameters that it knows.

    Whoever misspells one, or says elsewhere what is meant, would have something done to
    more than that.
    """

    parameters: frozenset[str] = frozenset()
    # Those that may be told several times.
    repeatable: frozenset[str] = frozenset()
    has_body = False

    def check_form(self, request: HttpRequest) -> None:
        """Refuse a request that asks for what nobody here knows, or for two things."""
        told = [
            {"where": where, "problem": problem}
            for where, problem in self._misfits(request)
        ]
        if told:
            told = told[:MOST_ERRORS]
            raise Problem(422, "invalid", "The request does not fit.", errors=told)

    def _misfits(self, request: HttpRequest) -> Iterator[tuple[str, str]]:
        for name, values in sorted(request.GET.lists()):
            where = f"query.{name[:LONGEST_NAME]}"
            if name not in self.parameters and name != "using":
                yield where, "unknown"
            elif len(values) > 1 and name not in self.repeatable:
                yield where, "told more than once"
        # Some programs send an empty object where there is nothing to be said.
        if not self.has_body and request.body.strip() not in (b"", b"{}"):
            yield "body", "nothing is to be said here"


class Needs(Gate):
    """Lets a request in if whoever has sent it may do that, or any of the others.

    A deed with names (to enqueue, to work) is looked at again when the name is known.
    """

    def __init__(self, deed: Deed, *others: Deed) -> None:
        self.deed = deed
        self.others = tuple(dict.fromkeys(others))

    def __call__(self, request: HttpRequest) -> Caller:
        caller = caller_of(request)
        if not any(_may(caller, each) for each in (self.deed, *self.others)):
            raise forbidden(_what_it_takes(self.deed, "…"))
        self.check_form(request)
        return caller


class IsWorker(Gate):
    """Lets in a worker that shows its secret, for as long as its token holds."""

    def __call__(self, request: HttpRequest) -> "Enlisted":
        match = request.resolver_match
        identity = match.kwargs.get("worker_id") if match else None
        worker_id = _id_in(identity)
        if not is_secret_of(worker_id, _bearer(request)):
            raise unauthenticated("This is not the secret of that worker.")
        database = database_of(request)
        self.check_form(request)
        worker = external_worker(database, worker_id)
        if worker is None:
            pace.count_dead(worker_id)
            return Enlisted(worker_id, None, Scopes())
        return Enlisted(worker_id, worker, _scopes_of(database, worker))


@dataclass(frozen=True, slots=True)
class Enlisted:
    """A worker that has shown its secret."""

    id: UUID
    # None: it was taken for dead, or has signed off.
    worker: ExternalWorker | None
    scopes: Scopes

    @property
    def name(self) -> str:
        """As logs name it."""
        return f"worker {self.worker.name if self.worker else self.id}"


def caller_in(request: HttpRequest) -> Caller:
    """Who was let in."""
    return request.auth  # type: ignore[attr-defined,no-any-return]


def enlisted_in(request: HttpRequest) -> Enlisted:
    """Which worker was let in."""
    return request.auth  # type: ignore[attr-defined,no-any-return]


def audit(caller: Caller | Enlisted, deed: str, *about: object) -> None:
    """Write into the log who has done what."""
    said = " ".join(map(str, about))
    logger.info("%s", in_one_line(f"{caller.name}: {deed} {said}"))


def database_of(request: HttpRequest) -> str:
    """The database that is meant: that of an alias of TASKS, if one is named."""
    try:
        return database_named(request.GET.get("using"))
    except (NoQueueError, LookupError, ValueError):
        raise not_found("No such alias of TASKS.", "unknown_alias") from None
    except Exception as error:
        # Django's own, which is not the same on all versions.
        if type(error).__name__.startswith("InvalidTaskBackend"):
            raise not_found("No such alias of TASKS.", "unknown_alias") from None
        raise


def caller_of(request: HttpRequest) -> Caller:
    """Who it is; a problem if nobody knows, or if they ask too often."""
    if "Authorization" in request.headers:
        return Caller(token=_token_of(request))
    return Caller(user=_user_of(request))


def is_staff(request: HttpRequest) -> bool:
    """Has the request the session of somebody who may enter the admin?"""
    user = getattr(request, "user", None)
    return user is not None and user.is_active and user.is_staff


def csrf_header() -> str:
    """By which header a session proves that a change is meant."""
    name = settings.CSRF_HEADER_NAME.removeprefix("HTTP_").replace("_", "-")
    # As Django's documentation spells it, though case does not matter.
    return "X-CSRFToken" if name == "X-CSRFTOKEN" else name


@sensitive_variables("text")
def _token_of(request: HttpRequest) -> ApiToken:
    text = _bearer(request)
    try:
        database = database_of(request)
    except Problem:
        # Strangers are not told which aliases there are.
        _used_token([each.database for each in backends()], text)
        raise
    return _used_token([database], text)


@sensitive_variables("text")
def _used_token(databases: Iterable[str], text: str) -> ApiToken:
    """The token of that text, counted as used; a problem if none of them knows it."""
    for database in dict.fromkeys(databases):
        token = find_token(database, text)
        if token is not None:
            pace.count(token)
            touch(database, token)
            return token
    raise unauthenticated("The token is not known, has expired or was revoked.")


def _scopes_of(database: str, worker: ExternalWorker) -> Scopes:
    """What its token allows now; a worker ends with the token that let it in."""
    token = token_by_id(database, worker.token_id) if worker.token_id else None
    if token is None:
        raise unauthenticated("The token of this worker has expired or was revoked.")
    pace.count(token)
    touch(database, token)
    return token.granted


def _user_of(request: HttpRequest) -> Any:
    if not (current().api_sessions and is_staff(request)):
        raise unauthenticated("A token is needed: Authorization: Bearer ….")
    if request.method not in _SAFE:
        _check_csrf(request)
    return request.user


def _check_csrf(request: HttpRequest) -> None:
    # Views of the API are exempt from the middleware: tokens need no such thing.
    if check_csrf(request) is not None:
        name = csrf_header()
        raise forbidden(f"The CSRF token is missing or wrong: send it in {name}.")


@sensitive_variables("text")
def _bearer(request: HttpRequest) -> str:
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or not text.isascii():
        raise unauthenticated("A token is needed: Authorization: Bearer ….")
    return text.strip()


def _id_in(text: Any) -> UUID:
    try:
        return UUID(str(text))
    except ValueError:
        raise not_found("That is not the id of a worker.") from None


def _may(caller: Caller, deed: Deed) -> bool:
    """May they do that with anything at all?"""
    if deed.scope in NAMED and caller.token is not None:
        return bool(caller.scopes.patterns(deed.scope))
    return caller.may(deed)


def _what_it_takes(deed: Deed, name: str) -> str:
    scope = f"{deed.scope}:{name}" if deed.scope in NAMED else deed.scope
    named = deed.permissions or ()
    words = "permission" if len(named) == 1 else "permissions"
    user = f", or the {words} {', '.join(named)}" if named else ""
    return f"This takes the scope {scope}{user}."


_SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
