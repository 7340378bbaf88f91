"""The addresses of the API: ``path("queue/", include("robust_queue.api.urls"))``."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import connections, transaction
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
)
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.utils.cache import patch_cache_control

from . import reading
from .app import api
from .problems import Problem, not_found

View = Callable[..., Any]


def nothing(request: HttpRequest) -> HttpResponse:
    """Any other address under this one."""
    raise not_found("There is nothing at this address.")


def _prepare(entry: URLPattern | URLResolver) -> None:
    """Make every view independent of what a project has for its own pages."""
    if isinstance(entry, URLResolver):
        for each in entry.url_patterns:
            _prepare(each)
        return
    view: Any = _in_problems(entry.callback)
    # Who may do what is asked here: Django's middleware for logins knows no tokens.
    view.login_required = False
    # So is for the proof that a session needs, and where nothing can be changed there
    # is none to be shown.
    view.csrf_exempt = True
    entry.callback = _without_transaction(view)


def _without_transaction(view: View) -> View:
    """Have no view run in a transaction, also where ATOMIC_REQUESTS says so.

    Whoever waits for jobs would keep it open, and every verb has transactions of its
    own, around which nothing may be held.
    """
    for alias in connections:
        transaction.non_atomic_requests(using=alias)(view)
    return view


def _in_problems(view: View) -> View:
    """What goes wrong is a problem like any other, also where ninja is not asked."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        is_head = request.method == "HEAD"
        try:
            response = view(_as_get(request) if is_head else request, *args, **kwargs)
        except Exception as error:
            response = api.on_exception(request, error)
        told = _for_nobody_else(_told(response))
        return _head_of(request, told) if is_head else told

    return answer


def _for_nobody_else(response: HttpResponseBase) -> HttpResponseBase:
    """Kept by no cache, unless it says otherwise: neither Django's nor one on the way.

    From there it would be told again when the token is revoked, or to who has none.
    """
    if not response.has_header("Cache-Control"):
        patch_cache_control(response, private=True, no_store=True, max_age=0)
    return response


def _as_get(request: HttpRequest) -> HttpRequest:
    request.method = "GET"
    return request


def _head_of(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """What would be answered, without what it would be."""
    request.method = "HEAD"
    if not response.streaming:
        return response  # Django leaves the body out
    # Nobody is to walk along all jobs for that. To close it would tell Django that the
    # request is over; it holds nothing before its first page is asked for.
    return HttpResponse(status=response.status_code, headers=dict(response.items()))


def _told(response: HttpResponseBase) -> HttpResponseBase:
    if not isinstance(response, HttpResponseNotAllowed):
        return response
    detail = "That cannot be done at this address."
    headers = {"Allow": response["Allow"]}
    return Problem(405, "wrong_method", detail, headers=headers).response()


_v1: Any = api.urls
urlpatterns: list[URLPattern | URLResolver] = [
    path("v1/openapi.json", reading.document, name="robust_queue_openapi"),
    path("v1/docs", reading.pages, name="robust_queue_api_docs"),
    path("v1/docs/<str:name>", reading.asset, name="robust_queue_api_asset"),
    path("v1/", include(_v1[:2], namespace=_v1[2])),
    re_path(r"^v1/", nothing),
]
for _each in urlpatterns:
    _prepare(_each)
