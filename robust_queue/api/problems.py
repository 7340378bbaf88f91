"""What is said when something is refused: problem details, as RFC 9457 has them.

Programs read the code, which stays; people read the title and the detail.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import Field

from robust_queue.exceptions import EnqueueError
from robust_queue.transactions import connected

logger = logging.getLogger("robust_queue.api")

MEDIA_TYPE = "application/problem+json"
# How many misfits are told, and how long a place in a request is that is quoted back.
MOST_ERRORS = 50
LONGEST_PLACE = 200


class Misfit(Schema):
    """One thing that is wrong with a request."""

    where: str = Field(description="Such as `body.limit` or `query.state`.")
    problem: str


class ProblemDetails(Schema):
    """Why a request was refused."""

    type: str = Field(description="`urn:robust-queue:` and the code.")
    title: str
    status: int
    code: str = Field(description="Stays the same from version to version.")
    detail: str
    errors: list[Misfit] = Field(description="Every misfit, if there are several.")


class Problem(Exception):  # noqa: N818 (the word of the RFC)
    """Ends a request with problem details."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})

    def within(self, *places: str) -> "Problem":
        """The same, of parts of what was sent."""
        parts = self.errors or [{"where": "", "problem": self.detail}]
        self.errors = [
            {**part, "where": f"{place}.{part['where']}".rstrip(".")[:LONGEST_PLACE]}
            for place in places
            for part in parts
        ][:MOST_ERRORS]
        return self

    def response(self) -> HttpResponse:
        """As it is sent."""
        told = {
            "type": f"urn:robust-queue:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "errors": list(self.errors),
        }
        response = JsonResponse(told, status=self.status, content_type=MEDIA_TYPE)
        for name, value in self.headers.items():
            response[name] = value
        return response


def unauthenticated(detail: str) -> Problem:
    """Nobody knows who asks."""
    headers = {"WWW-Authenticate": 'Bearer realm="robust-queue"'}
    return Problem(401, "unauthenticated", detail, headers=headers)


def forbidden(detail: str) -> Problem:
    """Whoever asks may not do that."""
    return Problem(403, "forbidden", detail)


def not_found(what: str, code: str = "not_found") -> Problem:
    """There is no such thing."""
    return Problem(404, code, what)


def conflict(detail: str, code: str) -> Problem:
    """It is not as it would have to be for that."""
    return Problem(409, code, detail)


def invalid(detail: str, code: str = "invalid") -> Problem:
    """It makes no sense."""
    return Problem(422, code, detail)


def install(api: NinjaAPI) -> None:
    """Have every error of an API end as a problem."""
    handlers: dict[type[Exception], Callable[[Any], Problem]] = {
        Problem: lambda error: error,
        ValidationError: _of_validation,
        AuthenticationError: lambda _: unauthenticated("A token is needed."),
        RequestDataTooBig: lambda _: Problem(
            413, "too_large", "The body is larger than DATA_UPLOAD_MAX_MEMORY_SIZE."
        ),
        SuspiciousOperation: lambda _: Problem(400, "malformed", "It cannot be read."),
        Http404: lambda _: not_found("There is nothing at this address."),
        HttpError: _of_framework,
        OperationalError: _unavailable,
        InterfaceError: _unavailable,
    }
    for kind, told in handlers.items():
        api.add_exception_handler(kind, _answering(told))
    api.add_exception_handler(EnqueueError, _answer_to_enqueue)
    api.add_exception_handler(Exception, _answer_to_accident)


def _answering(
    told: Callable[[Any], Problem],
) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: told(error).response()


def _unavailable(_: Exception) -> Problem:
    # Half-broken, or at a server that has become read-only: that one answers whatever
    # Django asks to see whether the connection is sound.
    for connection in connected():
        if not connection.in_atomic_block:
            connection.close()
    return Problem(
        503,
        "unavailable",
        "The database cannot be reached, or is busy.",
        headers={"Retry-After": "1"},
    )


def _of_framework(error: HttpError) -> Problem:
    # What the parser of bodies has said is wrapped up by then.
    cause = error.__cause__ or error.__context__
    if isinstance(cause, Problem):
        return cause
    return Problem(error.status_code, "malformed", str(error))


def _of_validation(error: ValidationError) -> Problem:
    # What was sent is not repeated: it may hold a secret.
    told = [
        {"where": _place(each["loc"]), "problem": str(each["msg"])}
        for each in error.errors[:MOST_ERRORS]
    ]
    return Problem(422, "invalid", "The request does not fit.", errors=told)


def _place(location: Sequence[Any]) -> str:
    """Where it is in what was sent. The second part is a name of ours."""
    kind, *path = map(str, location)
    names = path[1:] if kind == "body" else path[-1:]
    return ".".join([kind, *names])[:LONGEST_PLACE]


def _answer_to_enqueue(request: HttpRequest, error: Any) -> HttpResponse:
    # Without a cause it was others, again and again, who had the same unique key.
    if error.__cause__ is None or isinstance(error.__cause__, _PASSING):
        return _unavailable(error).response()
    return _answer_to_accident(request, error)


# What may be different a moment later. Whatever else the database says is ours to mend.
_PASSING = (OperationalError, InterfaceError)
# How PostgreSQL says that it takes no changes any more; others say it operationally.
_READ_ONLY = "25006"


def _answer_to_accident(request: HttpRequest, error: Any) -> HttpResponse:
    if any(getattr(it, "sqlstate", None) == _READ_ONLY for it in _causes(error)):
        return _unavailable(error).response()
    logger.error("%s %r failed.", request.method, request.path, exc_info=error)
    # As Django would: exception trackers listen to this.
    got_request_exception.send(sender=None, request=request)
    detail = "Something went wrong. The log of the server tells."
    return Problem(500, "internal", detail).response()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
