"""Scheduled for later ──▶ due now, because somebody asks for it.

A dispatcher finds it like every job whose time has come, within its polling interval:
one that needs slots waits for them, one of a paused queue waits for its end.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from robust_queue.models import ScheduledExecution
from robust_queue.stores.conflicts import retried

from .pause_task import is_aside
from .selection import BATCH_SIZE, OnProgress, Tally, Wanted, in_batches, standing


def run_now(database: str, job_id: UUID | str) -> bool:
    """Make a scheduled job due; False if it is not scheduled for later, or no longer.

    A job of a paused task was set aside, and stays there.
    """
    return run_all_now(database, [job_id]) == 1


def run_all_now(database: str, job_ids: Iterable[UUID | str]) -> int:
    """Make those of the jobs due that are scheduled for later; return how many."""
    wanted = [UUID(str(job_id)) for job_id in job_ids]
    batches = [wanted[i : i + BATCH_SIZE] for i in range(0, len(wanted), BATCH_SIZE)]
    return sum(len(_run(database, each)) for each in batches)


def run_now_matching(
    database: str, wanted: Wanted, *, on_progress: OnProgress | None = None
) -> Tally:
    """Make every scheduled job that matches due.

    Passed over is what is due already or on its way, and what belongs to a paused task.
    """
    if wanted.state != "scheduled":
        raise ValueError(
            f"Only scheduled jobs can be run now, not {wanted.state} ones."
        )
    return in_batches(database, wanted, partial(_run_batch, database), on_progress)


def _run(database: str, ids: Sequence[UUID]) -> set[UUID]:
    return retried(database, partial(_make_due, database, ids)) if ids else set()


def _run_batch(database: str, ids: Sequence[UUID]) -> Tally:
    done = _run(database, ids)
    left = [each for each in ids if each not in done]
    return Tally(len(ids), len(done), _excuses(database, left) if left else {})


def _excuses(database: str, left: Sequence[UUID]) -> dict[str, int]:
    found, aside = standing(database, left), _set_aside(database, left)
    words = Counter(found.get(each, "gone") for each in left if each not in aside)
    words["due already"] = words.pop("scheduled", 0)
    words["its task is paused"] = len(aside)
    return dict(+words)


def _make_due(database: str, ids: Sequence[UUID]) -> set[UUID]:
    rows = ScheduledExecution.objects.using(database)
    now = timezone.now()
    with transaction.atomic(using=database):
        # Whoever dispatches, discards or cancels one of them at this moment has it.
        locked = rows.filter(pk__in=ids).order_by("pk").select_for_update()
        later = [each for each in locked if _is_later(each.scheduled_at, now)]
        for each in later:
            each.scheduled_at = now
        # Like every transition: nobody who has read the old row can mistake it for the
        # new one.
        rows.filter(pk__in=[each.pk for each in later])._raw_delete(database)
        rows.bulk_create(later)
    return {each.pk for each in later}


def _is_later(moment: datetime, now: datetime) -> bool:
    return moment > now and not is_aside(moment)


def _set_aside(database: str, ids: Sequence[UUID]) -> set[UUID]:
    rows = ScheduledExecution.objects.using(database).filter(pk__in=ids)
    moments = rows.values_list("pk", "scheduled_at")
    return {job_id for job_id, moment in moments if is_aside(moment)}
