"""The admin pages: lists and details to read, and the few things operators do.

Found by the admin's autodiscovery. Nothing else imports this package, so that Robust
Queue works without ``django.contrib.admin``.
"""

from django.contrib.admin import AdminSite, site

from . import (
    attempts,
    executions,
    failures,
    jobs,
    keys,
    locks,
    operations,
    overview,
    processes,
    queues,
    recurring,
    recurring_history,
    roster,
    tokens,
)

__all__ = [
    "attempts",
    "executions",
    "failures",
    "jobs",
    "keys",
    "locks",
    "operations",
    "overview",
    "processes",
    "queues",
    "recurring",
    "recurring_history",
    "register",
    "roster",
    "tokens",
]

# As they are registered by now: later on somebody may take some of them out there.
_PAGES = {
    model: type(page)
    for model, page in site._registry.items()
    if model._meta.app_label == "robust_queue"
}


def register(on: AdminSite) -> None:
    """Have all pages on another admin site as well."""
    for model, page in _PAGES.items():
        if not on.is_registered(model):
            on.register(model, page)
