"""Flow control as tasks declare it: how many at once, how often, and which only once.

Frozen values, and nothing that knows the database.
"""

from collections.abc import Mapping
from typing import Any

from . import concurrency, rates, uniqueness
from .concurrency import Concurrency
from .rates import RateLimit
from .uniqueness import Unique

READERS = {
    "concurrency": concurrency.read,
    "unique": uniqueness.read,
    "rate_limit": rates.read,
}
NAMES = tuple(READERS)


def checked(declared: Mapping[str, Any]) -> dict[str, Any]:
    """What a task declares as it is kept, or an InvalidTask that says what is wrong."""
    return {
        name: None if value is None else READERS[name](name, value)
        for name, value in declared.items()
    }


__all__ = ["NAMES", "Concurrency", "RateLimit", "Unique", "checked"]
