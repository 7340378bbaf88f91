"""Titles: what ``ps`` and ``top`` call each process."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any


def title_of(kind: str, details: Mapping[str, Any]) -> str:
    """Name a process by its kind and by what is told of it, in its row or elsewhere."""
    queues = ",".join(details.get("queues", ()))
    facts = ", ".join(_facts(details))
    words = ["robust_queue:", kind.lower(), queues, f"({facts})" if facts else ""]
    return " ".join(filter(None, words))


def show(title: str) -> None:
    """Call this process so, if the package setproctitle is there."""
    if sys.platform == "darwin":
        return  # its mere import lets forked processes crash there
    with suppress(ImportError):
        from setproctitle import setproctitle  # noqa: PLC0415 (may be missing)

        setproctitle(title)


def _facts(details: Mapping[str, Any]) -> Iterator[str]:
    if "database" in details:
        yield details["database"]
    for name in ("threads", "coroutines"):
        if number := details.get(name):
            yield _counted(number, name)
    if details.get("quiet"):
        yield "quiet"
    if keys := details.get("recurring_tasks"):
        yield _counted(len(keys), "tasks")


def _counted(number: int, things: str) -> str:
    return f"{number} {things.removesuffix('s') if number == 1 else things}"
