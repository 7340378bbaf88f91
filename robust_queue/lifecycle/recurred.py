"""By what a job knows that it is a run of a recurring task."""

from robust_queue.context import forgetting, remembering
from robust_queue.stores.rows import Claim

MARK = "recurring_task"
_MARKED = f'"{MARK}":'


def marked(metadata: str, key: str) -> str:
    """What a job remembers, and with it of which recurring task it is a run."""
    return remembering(metadata, **{MARK: key})


def unmarked(metadata: str) -> str:
    """What a job remembers, but not that it is a run."""
    return forgetting(metadata, MARK)


def is_of_history(claim: Claim) -> bool:
    """Is it a run of a recurring task, whose end is to be written down?

    Such a job is kept until that is done, although nobody keeps jobs of its kind.
    """
    # Mostly there is nothing: to read it would take longer.
    return _MARKED in claim.metadata
