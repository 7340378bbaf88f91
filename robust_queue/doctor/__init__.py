"""What looks wrong with a queue, asked of its database.

The quick examination asks what an operator would ask first: who is alive, who serves
what, what waits in vain. The deep one asks the guarantees of every row.
"""

from . import activity, foundation, invariants, recurring, unique_locks
from .findings import Finding

__all__ = ["Finding", "examine"]


def examine(database: str, *, deep: bool) -> list[Finding]:
    """Everything that looks wrong, the most fundamental first.

    Reads only. While jobs are on the move, each finding is true of one moment, but
    not all of the same.
    """
    unusable = foundation.examine(database)
    if unusable:
        return unusable  # every other question would fail for the same reason
    found = [*activity.examine(database), *recurring.examine(database)]
    if deep:
        found += invariants.examine(database)
        found += unique_locks.examine(database)
        found += recurring.examine_deeply(database)
    return found
