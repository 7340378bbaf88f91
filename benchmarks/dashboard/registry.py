"""The pages of an app in the admin, collected from its registry."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

# They ask before they write, or lead elsewhere.
PASSED_OVER = ("_add", "_delete", "_history")

LONGEST = 30

Queries = Mapping[str, Iterable[Mapping[str, object]]]


class Page(NamedTuple):
    """A page: `job` is a list, `job?state=failed` too, `job/1` is about one row."""

    name: str
    address: str


def pages(
    app: str, samples: Mapping[str, str], queries: Queries | None = None
) -> Iterator[Page]:
    """Yield the index of the app, and all pages of its models.

    Addresses that need a value get it from the samples; lists are also asked what
    the queries say.
    """
    from django.urls import reverse

    yield Page("index", reverse("admin:app_list", args=[app]))
    for found in _found(app, samples):
        yield found
        for query in (queries or {}).get(found.name, ()):
            told = urlencode(query)
            # Ids and numbers of pages differ between sizes, and the page is the same.
            named = "&".join(_told(*pair) for pair in query.items())
            yield Page(f"{found.name}?{named}", f"{found.address}?{told}")


def _told(name: str, value: object) -> str:
    is_told = isinstance(value, str) and len(value) <= LONGEST
    return f"{name}={value}" if is_told else name


def _found(app: str, samples: Mapping[str, str]) -> Iterator[Page]:
    from django.contrib import admin
    from django.urls import reverse

    for model, model_admin in admin.site._registry.items():
        if model._meta.app_label != app:
            continue
        for pattern in model_admin.get_urls():
            name = pattern.name or ""
            if not name.startswith(f"{app}_") or name.endswith(PASSED_OVER):
                continue
            given = _values(model, pattern, samples)
            if given is not None:
                yield Page(_short(name, app), reverse(f"admin:{name}", kwargs=given))


def _short(name: str, app: str) -> str:
    name = name.removeprefix(f"{app}_").removesuffix("_changelist")
    return f"{name.removesuffix('_change')}/1" if name.endswith("_change") else name


def _values(
    model: Any, pattern: Any, samples: Mapping[str, str]
) -> dict[str, str] | None:
    """Return what the address needs; None if there is no such row."""
    given = {}
    for name in pattern.pattern.converters:
        value = samples.get(f"{model._meta.model_name} {name}") or samples.get(name)
        if name == "object_id":
            value = value or _first(model)
        if not value:
            return None
        given[name] = value
    return given


def _first(model: Any) -> str:
    if not model._meta.managed:
        return ""
    row = model._default_manager.order_by("pk").values_list("pk", flat=True).first()
    return "" if row is None else str(row)
