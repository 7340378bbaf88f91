"""``@limits_concurrency``: the limits of a task as a decorator."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar, cast

from . import registry
from .compat import is_task
from .flow.concurrency import Concurrency, OnConflict, declare_under
from .flow.keys import Key

T = TypeVar("T")


def limits_concurrency(
    *,
    key: Key = "",
    to: int = 1,
    duration: timedelta | float | None = None,
    group: str | None = None,
    on_conflict: OnConflict = "block",
) -> Callable[[T], T]:
    """``concurrency=`` as a decorator, above ``@task`` or under it.

    Above another one of its kind it adds a limit.
    """
    limit = Concurrency(
        key=key,
        limit=to,
        duration=cast("timedelta | None", duration),
        group=group,
        on_conflict=on_conflict,
    )

    def declare(task: Any) -> Any:
        if not is_task(task):
            declare_under(task, limit)
            return task
        if not hasattr(task, "concurrency"):
            return task  # of another backend, where this has no effect
        limits = (*(task.concurrency or ()), limit)
        declared = replace(cast("Any", task), concurrency=limits)
        # The one that was declared before knows nothing of this limit.
        registry.redeclare(declared)
        return declared

    return declare
