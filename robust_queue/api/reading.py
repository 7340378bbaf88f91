"""The document and its pages, for people and for generators of clients.

All of it comes from here: nothing is fetched from anywhere else, and no other app has
to be installed for it.
"""

from functools import cache
from importlib.resources import files

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from .access import caller_of, csrf_header, is_staff
from .app import api
from .problems import not_found, unauthenticated

# What may be asked for by name, and where it lies.
ASSETS = {
    "swagger-ui.css": ("ninja", "static/ninja/swagger-ui.css", "text/css"),
    "swagger-ui-bundle.js": (
        "ninja",
        "static/ninja/swagger-ui-bundle.js",
        "text/javascript",
    ),
    "begin.js": ("robust_queue", "static/robust_queue/api.js", "text/javascript"),
}


@require_safe
def document(request: HttpRequest) -> HttpResponseBase:
    """The OpenAPI document, for whoever is known here."""
    # Whoever may look at the admin may read what there is, whether or not sessions
    # open anything here.
    if "Authorization" in request.headers or not is_staff(request):
        caller_of(request)
    # Wherever the project has put its addresses.
    root = request.path.removesuffix("openapi.json")
    return JsonResponse(api.get_openapi_schema(path_prefix=root))


@require_safe
def pages(request: HttpRequest) -> HttpResponseBase:
    """The document as pages on which requests can be tried."""
    if not is_staff(request):
        return _to_login(request)
    told = {"csrf_header": csrf_header()}
    return render(request, "robust_queue/api/pages.html", told)


@require_safe
@cache_control(max_age=3600)
def asset(request: HttpRequest, name: str) -> HttpResponseBase:
    """A script or a style of those pages."""
    if name not in ASSETS:
        raise not_found("There is nothing at this address.")
    content, kind = _content(name)
    return HttpResponse(content, content_type=f"{kind}; charset=utf-8")


def _to_login(request: HttpRequest) -> HttpResponseBase:
    # Browsers send no token with an address that somebody enters. Not every project has
    # an admin, or people who log in.
    from django.contrib.auth.views import redirect_to_login  # noqa: PLC0415

    try:
        return redirect_to_login(request.get_full_path(), reverse("admin:login"))
    except NoReverseMatch:
        raise unauthenticated("This page is for staff who are logged in.") from None


@cache
def _content(name: str) -> tuple[bytes, str]:
    package, path, kind = ASSETS[name]
    return files(package).joinpath(path).read_bytes(), kind
