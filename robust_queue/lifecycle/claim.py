"""Ready ──▶ claimed, for one process."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from django.utils import timezone

from robust_queue.stores import store_for
from robust_queue.stores.rows import Claim, Selection


def claim(
    database: str,
    *,
    process_id: UUID,
    queues: Sequence[str] = ("*",),
    limit: int = 1,
    is_likely: bool = True,
) -> list[Claim]:
    """Take up to ``limit`` jobs from these queues, in order.

    Whoever does not expect any says so with ``is_likely=False``: a poll in vain is
    cheaper then.

    All of them carry one token, made here. Should the database's reply get lost, the
    jobs that carry the token are known to be this process's.
    """
    if limit < 1 or not queues:
        return []
    return store_for(database).claim(
        Selection(tuple(queues)),
        limit=limit,
        process_id=process_id,
        token=uuid4(),
        now=timezone.now(),
        is_likely=is_likely,
    )
