"""The way around: one bar above every page of ours, and few entries in the index."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from . import databases, display, permissions

# The pages for people, by the names of their models. All others are tables as they
# are, and found from here.
PAGES = {
    "overview": _("Overview"),
    "job": _("Jobs"),
    "queue": _("Queues"),
    "failures": _("Failures"),
    "recurringtask": _("Recurring tasks"),
    "processtree": _("Processes"),
    "semaphore": _("Concurrency keys"),
    "operation": _("Operations"),
}


class Way(NamedTuple):
    """The way to a page."""

    label: Any
    address: str
    is_current: bool = False


def frame(site: AdminSite, request: HttpRequest, current: str) -> dict[str, Any]:
    """What stands around every page."""
    database, known = databases.database_of(request), databases.known()
    return {
        "rqueue_ways": [*_ways(site, request, current)],
        "rqueue_database": database,
        "rqueue_databases": known if len(known) > 1 or database not in known else [],
        "rqueue_choice": display.list_url(site, "overview"),
        "rqueue_is_read_only": permissions.is_read_only(),
    }


def tables(site: AdminSite, request: HttpRequest) -> list[Way]:
    """The ways to the tables as they are, as far as this user may see them."""
    found = [
        Way(page.opts.verbose_name_plural, display.list_url(site, name))
        for name, page in _ours(site)
        if name not in PAGES and page.has_view_permission(request)
    ]
    return sorted(found, key=lambda way: str(way.label))


def _ways(site: AdminSite, request: HttpRequest, current: str) -> Iterator[Way]:
    ours = dict(_ours(site))
    for name, label in PAGES.items():
        if name in ours and ours[name].has_view_permission(request):
            yield Way(label, display.list_url(site, name), name == current)


def _ours(site: AdminSite) -> Iterator[tuple[str, Any]]:
    for model, page in site._registry.items():
        if model._meta.app_label == "robust_queue":
            yield str(model._meta.model_name), page
