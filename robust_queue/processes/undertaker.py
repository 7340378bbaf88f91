"""The undertaker: settles the claims of processes that are gone.

Everything acts through the token of a claim, so that it may be done twice, half, or by
two supervisors at the same time.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Case, When
from django.utils import timezone

from robust_queue.lifecycle import recover
from robust_queue.lifecycle.recover import HeldClaim
from robust_queue.lifecycle.release import release
from robust_queue.models import Process
from robust_queue.models.processes import EXTERNAL

from . import ProcessExitError, ProcessMissingError, ProcessPrunedError
from .children import Child
from .connections import briefly
from .errands import PATIENCE
from .page import Record, Stage

logger = logging.getLogger("robust_queue")

BATCH = 100

Records = Mapping[tuple[UUID, UUID], Record]


def bury(database: str, dead: Child) -> None:
    """Do with the claims of a child what its page says, then strike it off.

    What it had reserved goes back, what it had done is recorded as the outcome it had,
    what it had begun meets its task's crash policy, or goes back if it was dismissed.
    """
    with briefly(database, seconds=PATIENCE):
        transaction.on_commit(dead.page.show_buried, using=database)
        # First of all: a claim that is still on its way then comes to nothing.
        Process.objects.using(database).strike_off(dead.identity)
        claims = recover.claims_of(database, dead.identity)
        records = {(each.job_id, each.token): each for each in dead.page.records()}
        _settle_done(database, claims, records)
        late, begun = _sorted(claims, records, dead)
        recover.time_out(database, late, worker_id=dead.name)
        if dead.was_dismissed or dead.was_overdue:
            # Only what was late pays for it.
            _give_back(database, begun, dead)
        else:
            recover.give_up(database, begun, _exit_of(dead), worker_id=dead.name)
        _give_back_rest(database, dead)


def prune(database: str, *, threshold: timedelta, spare: Sequence[UUID]) -> int:
    """Strike off processes that were silent for too long; return how many."""
    silent = Process.objects.using(database).silent_for(threshold)
    # Workers outside come in any number, and are not to keep our own waiting.
    outside = Case(When(kind=EXTERNAL, then=1), default=0)
    found = list(silent.exclude(pk__in=spare).order_by(outside)[:BATCH])
    return sum(_prune(database, each, threshold) for each in found)


def look_after_the_lost(
    database: str, *, threshold: timedelta, spare: Sequence[UUID]
) -> None:
    """Strike off the silent, and settle what belongs to nobody."""
    prune(database, threshold=threshold, spare=spare)
    adopt_orphans(database)


def adopt_orphans(database: str) -> int:
    """Settle claims of processes that nobody knows; return how many."""
    with briefly(database, seconds=PATIENCE):
        claims = recover.claims_of_nobody(database, limit=BATCH)
        if not claims:
            return 0
        error = ProcessMissingError(
            "The job was claimed by a process that is not registered any more."
        )
        return len(recover.give_up(database, claims, error, worker_id="unknown"))


def _settle_done(database: str, claims: Sequence[HeldClaim], records: Records) -> None:
    done = [records.get((each.job_id, each.token)) for each in claims]
    outcomes = [each.outcome for each in done if each and each.outcome]
    if outcomes:
        recover.record(database, outcomes)


def _sorted(
    claims: Sequence[HeldClaim], records: Records, dead: Child
) -> tuple[list[HeldClaim], list[HeldClaim]]:
    """Those that had begun: whose time was up when their process ended, and others."""
    late, others = list[HeldClaim](), list[HeldClaim]()
    for claim in claims:
        record = records.get((claim.job_id, claim.token))
        if record is None or record.stage is not Stage.STARTED:
            continue
        begun = replace(claim, started_at=_stored(record.started_at))
        (late if record.ends < dead.ended else others).append(begun)
    return late, others


def _give_back(database: str, claims: Sequence[HeldClaim], dead: Child) -> None:
    held = release(database, claims)
    recover.end_runs(database, held)
    if held:
        logger.warning("%d running jobs of %s went back.", len(held), dead.name)


def _give_back_rest(database: str, dead: Child) -> None:
    """What is left was never begun, or was claimed without the child's knowledge."""
    release(database, recover.claims_of(database, dead.identity))


def _exit_of(dead: Child) -> ProcessExitError:
    how = dead.end_in_words
    return ProcessExitError(f"{dead.name} ended while it ran this job: {how}.")


def _prune(database: str, silent: Process, threshold: timedelta) -> int:
    """Strike one process off, unless it has been heard of meanwhile.

    Its row goes first, and only if it is still silent: a process that beats just now
    finds itself alive, one that beats later finds itself gone and leaves. In between it
    would work on while others run its jobs.
    """
    with briefly(database, seconds=PATIENCE):
        still_silent = Process.objects.using(database).silent_for(threshold)
        if not still_silent.strike_off(silent.pk):
            return 0
        error = ProcessPrunedError(
            f"{silent.name} was silent for more than {threshold}, since "
            f"{silent.last_heartbeat_at.isoformat(' ', 'seconds')}."
        )
        claims = recover.claims_of(database, silent.pk)
        recover.give_up(
            database,
            claims,
            error,
            worker_id=str(silent.name),
            # Nobody saw it die, and mostly it has only lost its connection.
            otherwise="retry" if silent.kind == EXTERNAL else None,
        )
    logger.warning("%s was silent for too long and is struck off.", silent.name)
    return 1


def _stored(moment: datetime) -> datetime:
    return moment if settings.USE_TZ else timezone.make_naive(moment)
