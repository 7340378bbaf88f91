"""The line to a queue: requests go out, answers or errors come back."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from .errors import ApiError, UnreachableError

T = TypeVar("T")

# Servers close what is idle after two seconds or more. A request on a line that is
# being closed would be lost.
IDLE_FOR = 1.5
MOST_LINES = 100
# The start of what is no JSON, for people who look for the reason.
SHOWN = 200
# What may stand behind ``Bearer`` in a header, as RFC 6750 has it.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Line:
    """Sends one request at a time, from any thread."""

    def __init__(
        self,
        url: str,
        *,
        using: str | None,
        timeout: float,
        transport: httpx.BaseTransport | None,
    ) -> None:
        self._query = {} if using is None else {"using": using}
        self._timeout = timeout
        self._http = httpx.Client(
            base_url=f"{_checked_url(url)}/v1/",
            timeout=timeout,
            transport=transport,
            limits=httpx.Limits(max_connections=MOST_LINES, keepalive_expiry=IDLE_FOR),
        )

    def call(
        self,
        method: str,
        path: str,
        bearer: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        longer: float = 0,
    ) -> httpx.Response:
        """The answer; an ApiError if it is none. It may take so much longer."""
        how = self._how(bearer, query, longer)
        if body is not None:
            how["content"] = json.dumps(body, allow_nan=False)
            how["headers"]["Content-Type"] = "application/json"
        with _errors():
            response = self._http.request(method, path, **how)
        _refuse_problem(response)
        return response

    @contextmanager
    def stream(
        self, path: str, bearer: str, query: Mapping[str, Any]
    ) -> Iterator[httpx.Response]:
        """An answer that is read bit by bit."""
        with (
            _errors(),
            self._http.stream("GET", path, **self._how(bearer, query)) as response,
        ):
            if not response.is_success:
                response.read()
            _refuse_problem(response)
            yield response

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def _how(
        self, bearer: str, query: Mapping[str, Any] | None, longer: float = 0
    ) -> dict[str, Any]:
        return {
            "headers": {"Authorization": f"Bearer {bearer}"},
            "params": {**self._query, **(query or {})},
            "timeout": httpx.Timeout(self._timeout, read=self._timeout + longer),
        }


def told(response: httpx.Response, read: Callable[[Any], T]) -> T:
    """What is read from an answer; an ApiError if it is none of the queue's."""
    try:
        return read(response.json())
    except (ValueError, TypeError, LookupError, AttributeError):
        shown = response.text[:SHOWN]
        raise ApiError(response.status_code, "unexpected", shown) from None


def checked_token(token: str) -> str:
    """The token, as it was meant: files end in a line break. Never told in an error."""
    token = token.strip()
    if not token:
        raise ValueError("The token is empty.")
    if _TOKEN.fullmatch(token) is None:
        raise ValueError("The token has characters that no token has.")
    return token


def _checked_url(url: str) -> str:
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is no address: {error}.") from None
    if found.scheme not in ("http", "https") or not found.host:
        raise ValueError(
            f"{url!r} is no address of a queue: it begins with https:// or http://, "
            "and a host."
        )
    return url.rstrip("/")


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except httpx.RequestError as error:
        raise UnreachableError(_in_words(error)) from error


def _in_words(error: httpx.RequestError) -> str:
    request, name = error.request, type(error).__name__
    # What cannot be sent is quoted in such an error, and may be a header with a token.
    said = "" if isinstance(error, httpx.LocalProtocolError) else f": {error}"
    return f"{request.method} {request.url.path}: {name}{said}"


def _refuse_problem(response: httpx.Response) -> None:
    if response.is_success:
        return
    problem = _problem(response)
    raise ApiError(
        response.status_code,
        str(problem.get("code", "unexpected")),
        str(problem.get("detail") or response.text[:SHOWN] or response.reason_phrase),
        errors=problem.get("errors") or (),
        retry_after=_seconds(response.headers.get("Retry-After")),
    )


def _problem(response: httpx.Response) -> dict[str, Any]:
    # Not everything that refuses is the queue: there may be a proxy before it.
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _seconds(text: str | None) -> float | None:
    # The other form of this header, a date, is not what the queue sends.
    return float(text) if text and text.isdecimal() else None
