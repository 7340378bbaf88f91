"""One verb for all jobs that match, in batches, while somebody looks on or not.

Whoever asks for it writes a row, which dispatchers go on with, one of them at a time.
The row is also the account: who wanted what, how far it has come, what was passed over.

A batch is one transaction: the jobs change together with the cursor behind them and the
numbers. Whoever dies in the middle has changed nothing, and nothing is done twice, not
even to a job that has failed again meanwhile. States are walked in the direction of the
arrows, so that a job that moves on is met again; one that goes back, because a worker
has given it up, may be missed.
"""

import json
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import models, transaction
from django.utils import timezone

from robust_queue.identifiers import new_job_id
from robust_queue.models import Job, Operation
from robust_queue.reports import report
from robust_queue.stores.conflicts import retried

from .deeds import VERBS
from .search import JobSearch
from .search_walk import Step, count_up_to, step
from .selection import Filter, Tally

# How many jobs are counted at most before anything is done.
COUNTED = 100_000
# Many times as long as a batch takes: whoever has not come back by then is gone.
LEASE = timedelta(minutes=1)
# Seconds until it is tried again, twice as many each time, and how often.
FIRST_PAUSE, LONGEST_PAUSE = 2, 60
MOST_FAILURES = 8
KEPT_FOR = timedelta(days=7)
# Of an error, as much is kept as anybody reads.
MOST_TEXT = 2_000


# ── Asking ─────────────────────────────────────────────────────────────────────


def request(
    database: str, verb: str, search: JobSearch, *, requested_by: str = ""
) -> Operation:
    """Have this done to all jobs that match and are there by now.

    A ValueError if it cannot be done to such jobs.
    """
    states_for(verb, search)
    newest = _newest(database)
    return Operation.objects.using(database).create(
        verb=verb,
        criteria=search.written,
        requested_by=requested_by[:255],
        requested_at=timezone.now(),
        newest=newest,
        expected=expected(database, verb, search, newest=newest, most=COUNTED),
    )


def states_for(verb: str, search: JobSearch) -> tuple[str, ...]:
    """The states that are walked; a ValueError if there is none."""
    if verb not in VERBS:
        known = ", ".join(VERBS)
        raise ValueError(f"There is no verb {verb!r}; those that are: {known}.")
    states, common = VERBS[verb].states, search.common_state
    meant = tuple(each for each in states if not common or each in search.states)
    if not meant:
        word = verb.replace("_", " ")
        raise ValueError(f"To {word} is nothing that can be done to {common} jobs.")
    return meant


def expected(
    database: str,
    verb: str,
    search: JobSearch,
    *,
    most: int,
    newest: UUID | None = None,
) -> int | None:
    """How many jobs will be met; None if there are more, or no index tells."""
    total, end = 0, newest or _newest(database)
    for state in states_for(verb, search):
        number = count_up_to(database, search, state, newest=end, most=most - total)
        if number is None:
            return None
        total += number
    return total


def stop(database: str, operation_id: UUID | str) -> bool:
    """Do no more of it; False if it is over, or does not exist.

    What is done stays done. A batch that is under way comes to its end first: it holds
    the row. The next one does not find it open any more.
    """
    now = timezone.now()
    rows = _open(database).filter(pk=operation_id)
    change = partial(rows.update, stopped_at=now, finished_at=now, leased_until=None)
    return bool(retried(database, change))


def forget(database: str, now: datetime) -> int:
    """Delete those that have been over for long; return how many."""
    rows = Operation.objects.using(database).filter(finished_at__lt=now - KEPT_FOR)
    return retried(database, lambda: rows.delete()[0])


def _newest(database: str) -> UUID:
    """The latest job that there is: hosts whose clocks are ahead make later ids."""
    ids = Job.objects.using(database).order_by("-pk").values_list("pk", flat=True)
    return ids.first() or new_job_id()


# ── Doing ──────────────────────────────────────────────────────────────────────


def carry_out(database: str, process_id: UUID) -> bool:
    """Do a batch of the oldest operation that nobody else is at; False without any."""
    operation_id = _take(database, process_id)
    if operation_id is None:
        return False
    try:
        batch = partial(_do_batch, database, operation_id, process_id)
        retried(database, batch)
    except Exception as error:
        report(error, "an operation on many jobs was carried out")
        _note(database, operation_id, process_id, error)
    return True


def _take(database: str, process_id: UUID) -> UUID | None:
    """The operation to go on with, which is this process's own for a while.

    Two dispatchers may find the same one. Each changes the row only if it is still
    free, and the second waits for the first one's change and then finds it taken.
    """
    now = timezone.now()
    free = models.Q(leased_until__isnull=True) | models.Q(leased_until__lt=now)
    mine = models.Q(process_id=process_id)
    rows = _open(database).filter(free | mine)
    found = rows.order_by("pk").values_list("pk", flat=True).first()
    if found is None:
        return None
    lease = partial(
        rows.filter(pk=found).update, process_id=process_id, leased_until=now + LEASE
    )
    return found if retried(database, lease) else None


def _do_batch(database: str, operation_id: UUID, process_id: UUID) -> None:
    with transaction.atomic(using=database):
        operation = _hold(database, operation_id, process_id)
        if operation is None:
            return
        search = JobSearch.read(operation.criteria)
        states = states_for(operation.verb, search)
        operation.state = operation.state or states[0]
        found = _step(database, operation, search)
        if found.ids:
            wanted = Filter(state=operation.state, ids=found.ids)
            tally = VERBS[operation.verb].change(database, wanted)
            _count(operation, tally)
        _advance(operation, states, found)
        operation.problem, operation.failures = "", 0
        operation.save(using=database)


def _hold(database: str, operation_id: UUID, process_id: UUID) -> Operation | None:
    """The row, which nobody else changes before the batch has ended.

    By a change, which locks it on every database. It is not ours any more if the lease
    has run out and somebody else has taken it, nor if it was stopped.
    """
    now = timezone.now()
    rows = _open(database).filter(pk=operation_id, process_id=process_id)
    if not rows.update(leased_until=now + LEASE):
        return None
    operation = Operation.objects.using(database).get(pk=operation_id)
    operation.started_at = operation.started_at or now
    return operation


def _step(database: str, operation: Operation, search: JobSearch) -> Step:
    return step(
        database,
        search,
        operation.state,
        behind=operation.cursor,
        newest=operation.newest,
    )


def _count(operation: Operation, tally: Tally) -> None:
    operation.matched += tally.matched
    operation.done += tally.done
    reasons = Counter(operation.reasons) + Counter(tally.passed_over)
    operation.passed_over = json.dumps(reasons) if reasons else ""


def _advance(operation: Operation, states: tuple[str, ...], found: Step) -> None:
    """Behind what was looked at, or to the next state, or to the end."""
    operation.cursor = found.end
    if found.end is not None:
        return
    left = states[states.index(operation.state) + 1 :]
    if left:
        operation.state = left[0]
    else:
        operation.finished_at, operation.leased_until = timezone.now(), None


def _note(
    database: str, operation_id: UUID, process_id: UUID, error: Exception
) -> None:
    """Write down what went wrong; it is tried again a while later, by anybody."""
    operation = _open(database).filter(pk=operation_id, process_id=process_id).first()
    if operation is None:
        return
    now, failures = timezone.now(), operation.failures + 1
    pause = min(FIRST_PAUSE * 2**operation.failures, LONGEST_PAUSE)
    changes: dict[str, Any] = {
        "failures": failures,
        "problem": f"{type(error).__name__}: {error}"[:MOST_TEXT],
        "process_id": None,
        "leased_until": now + timedelta(seconds=pause),
    }
    if failures >= MOST_FAILURES:
        changes |= {"finished_at": now, "leased_until": None}
    rows = _open(database).filter(pk=operation_id, process_id=process_id)
    retried(database, partial(rows.update, **changes))


def _open(database: str) -> Any:
    return Operation.objects.using(database).filter(finished_at__isnull=True)
