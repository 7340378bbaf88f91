"""Points Django's tests at Robust Queue, changing as little of them as can be."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

import django

from tests.conformance.departures import ADAPTED

HEADER = """\
from asgiref.sync import sync_to_async
from robust_queue.testing import drain
"""


class RewriteError(RuntimeError):
    """Django's tests no longer contain what is to be replaced."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """A change made everywhere, and why."""

    pattern: str
    replacement: str
    reason: str


EVERYWHERE = (
    Substitution(
        r"\bdjango\.tasks\.backends\.(dummy|immediate)\b",
        "tests.conformance.graft",
        "The backend under test is Robust Queue's.",
    ),
    Substitution(
        r"\bSimpleTestCase\b",
        "TransactionTestCase",
        "Jobs are rows, and tests without a database may not write any.",
    ),
    Substitution(
        r"\bavailable_apps = \[\]",
        "available_apps = None",
        "The tables of unavailable apps are not emptied after a test.",
    ),
)
BACKPORT = (
    Substitution(
        r"\bdjango\.tasks\b", "django_tasks", "Before Django 6.0 tasks come with it."
    ),
    Substitution(
        r"(?m)^from django_tasks import Task,",
        "from django_tasks.base import Task\nfrom django_tasks import",
        "The backport does not offer Task at the top.",
    ),
    Substitution(
        r"\basync Tasks\b", "async tasks", "The backport writes it without a capital."
    ),
)
OLD_NAMES = Substitution(
    r"\b(InvalidTask(?:Backend)?)\b",
    r"\1Error",
    "Releases of the backport up to 0.12 have other names for two exceptions.",
)


def rewritten(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files as they are to be run."""
    adapted = {name: _adapt(text) for name, text in files.items()}
    for substitution in _substitutions():
        adapted = _substitute(substitution, adapted)
    return adapted


def _substitutions() -> Iterator[Substitution]:
    yield from EVERYWHERE
    if django.VERSION < (6, 0):
        yield from BACKPORT
        if not hasattr(import_module("django_tasks.exceptions"), "InvalidTask"):
            yield OLD_NAMES


def _substitute(substitution: Substitution, files: Mapping[str, str]) -> dict[str, str]:
    pattern, replacement = substitution.pattern, substitution.replacement
    changed = {name: re.sub(pattern, replacement, text) for name, text in files.items()}
    if changed == files:
        raise RewriteError(f"Django's tests have nothing like {pattern!r} any more.")
    return changed


def _adapt(text: str) -> str:
    """Adapt single tests, as the table of departures says."""
    methods = [node for name, node in _methods(text) if name in ADAPTED]
    edits = [edit for method in methods for edit in _edits(method, text)]
    return HEADER + _apply(edits, text) if edits else text


def _methods(text: str) -> Iterator[tuple[str, ast.AST]]:
    for group in ast.parse(text).body:
        if isinstance(group, ast.ClassDef):
            for node in group.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{group.name}.{node.name}", node


Edit = tuple[int, int, str]


def _edits(method: ast.AST, text: str) -> list[Edit]:
    """Drain where the test changes a result in memory; in async, leave the loop."""
    edits = []
    for node in ast.walk(method):
        if _sets_attribute(node):
            code = "drain()"
        elif _reads_database(node):
            code = ast.get_source_segment(text, node)
        else:
            continue
        if isinstance(method, ast.AsyncFunctionDef):
            code = f"(await sync_to_async(lambda: {code})())"
        edits.append((*_span(node, text), code))
    if not edits:
        raise RewriteError(f"Nothing is left to adapt in Django's {method.name}.")
    return edits


def _sets_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _attribute(node.func) == "__setattr__"


def _reads_database(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _attribute(node.func) == "refresh"
    return _attribute(node) == "results"


def _attribute(node: ast.AST) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else None


def _span(node: ast.AST, text: str) -> tuple[int, int]:
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:index])) for index in range(len(lines))]
    # Columns are counted in bytes; Django's tests of tasks are ASCII.
    start = starts[node.lineno - 1] + node.col_offset
    return start, starts[node.end_lineno - 1] + node.end_col_offset


def _apply(edits: list[Edit], text: str) -> str:
    # From the end, so that the positions of those before stay true.
    for start, end, code in sorted(edits, reverse=True):
        text = text[:start] + code + text[end:]
    return text
