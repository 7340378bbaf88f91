"""What is wrong with a value and where it is, told while the error unwinds."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

LONGEST_PATH = 12
LONGEST_NAME = 100

T = TypeVar("T")
Step: TypeAlias = Callable[[int], str]


class MisfitError(Exception):
    """A value that cannot be written or read; collects the path to it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.steps: list[str] = []  # innermost first
        super().__init__(reason)

    def inside(self, step: str) -> None:
        self.steps.append(step)

    def located(self, root: str) -> str:
        path = root + "".join(_shortened(self.steps[::-1]))
        return f"{path}: {self.reason}" if path else self.reason


def each(
    convert: Callable[..., T], items: Iterable[Any], step: Step, *context: Any
) -> list[T]:
    """Convert items in turn; the step to the one that fails joins its path."""
    converted: list[T] = []
    try:
        for item in items:
            converted.append(convert(item, *context))
    except MisfitError as misfit:
        misfit.inside(step(len(converted)))
        raise
    return converted


def by_index(at: int) -> str:
    return f"[{at}]"


def by_key(keys: Sequence[Any]) -> Step:
    return lambda at: f"[{named(keys[at])}]"


def by_field(names: Sequence[str]) -> Step:
    return lambda at: f".{names[at]}"


def named(value: Any) -> str:
    """A short repr that never fails: it must not hide the error being told."""
    try:
        text = repr(value)
    except Exception:
        return f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def _shortened(steps: list[str]) -> list[str]:
    if len(steps) <= LONGEST_PATH:
        return steps
    return [*steps[: LONGEST_PATH - 3], "…", *steps[-3:]]
