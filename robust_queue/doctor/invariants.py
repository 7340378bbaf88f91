"""The guarantees, asked of every row, each with one statement or a few.

Whatever the number of rows, the database finds the offenders; only those come back.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from django.db.models import Exists, Max, Model, OuterRef, Q, QuerySet

from robust_queue import registry
from robust_queue.configuration import current
from robust_queue.lifecycle.recount import miscounted
from robust_queue.models import (
    Attempt,
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    FinishedExecution,
    IsolatedRun,
    Job,
    Process,
    ReadyExecution,
    ScheduledExecution,
    Semaphore,
)

from .findings import SHOWN, Finding, Offenders, bounded, named

WAITING = {
    "scheduled": ScheduledExecution,
    "ready": ReadyExecution,
    "blocked": BlockedExecution,
    "claimed": ClaimedExecution,
}
STATES: dict[str, type[Model]] = {
    **WAITING,
    "failed": FailedExecution,
    "finished": FinishedExecution,
}


def examine(database: str) -> Iterator[Finding]:
    """Every guarantee that tables can tell to be broken."""
    for text, rows in _broken(database):
        if rows:
            yield Finding("problem", text, rows)
    for text, rows in _doubtful(database):
        if rows:
            yield Finding("warning", text, rows)


Answers = Iterator[tuple[str, tuple[str, ...]]]


def _broken(database: str) -> Answers:
    yield "Jobs are lost: no execution row tells where they stand.", _lost(database)
    yield "Jobs stand in two places at once.", _doubled(database)
    yield "Rows belong to no job.", _orphaned(database)
    yield (
        "Jobs are claimed by processes that do not exist.",
        _claimed_by_nobody(database),
    )
    yield (
        "Jobs are claimed by processes that are silent.",
        _claimed_in_silence(database),
    )
    yield "Semaphores miscount: free is not limit minus held.", _miscounted(database)


def _doubtful(database: str) -> Answers:
    text = "Jobs are blocked although their key has a free slot: the next sweep's work."
    yield text, _blocked_in_vain(database)
    text = "Jobs have more attempts than their task allows: were they retried by hand?"
    yield text, _tried_too_often(database)


def _lost(database: str) -> tuple[str, ...]:
    nowhere = {f"{state}_execution__isnull": True for state in STATES}
    jobs = _rows(Job, database).filter(**nowhere)
    return named((jobs.values_list("pk", "task_path"), "job {} ({})".format))


def _doubled(database: str) -> tuple[str, ...]:
    return named(*(_in_both(database, *pair) for pair in combinations(STATES, 2)))


def _in_both(database: str, first: str, second: str) -> Offenders:
    other = STATES[second]._default_manager.filter(pk=OuterRef("pk"))
    rows = _rows(STATES[first], database).filter(Exists(other))
    return rows.values_list("pk"), f"job {{}} is {first} and {second}".format


def _orphaned(database: str) -> tuple[str, ...]:
    models: list[type[Model]] = [*STATES.values(), Attempt, IsolatedRun]
    return named(*(_without_job(database, model) for model in models))


def _without_job(database: str, model: type[Model]) -> Offenders:
    job = Job.objects.filter(pk=OuterRef("job_id"))
    rows = _rows(model, database).filter(~Exists(job))
    return rows.values_list("job_id"), f"job {{}} in {model._meta.db_table}".format


def _claimed_by_nobody(database: str) -> tuple[str, ...]:
    process = Process.objects.filter(pk=OuterRef("process_id"))
    return _claims(_rows(ClaimedExecution, database).filter(~Exists(process)))


def _claimed_in_silence(database: str) -> tuple[str, ...]:
    silent = Process.objects.silent_for(current().process_alive_threshold)
    process = silent.filter(pk=OuterRef("process_id"))
    return _claims(_rows(ClaimedExecution, database).filter(Exists(process)))


def _claims(claims: QuerySet[Any]) -> tuple[str, ...]:
    rows = claims.values_list("pk", "process_id")
    return named((rows, "job {}, claimed by process {}".format))


def _miscounted(database: str) -> tuple[str, ...]:
    wrong = miscounted(database)
    shown = [
        f"{key}: {value} of {limit} free, {held} held"
        for key, value, limit, held in wrong[:SHOWN]
    ]
    return bounded(shown, len(wrong) - len(shown))


def _blocked_in_vain(database: str) -> tuple[str, ...]:
    semaphore = Semaphore.objects.filter(key=OuterRef("concurrency_key"))
    free = Exists(semaphore.filter(value__gt=0)) | Q(~Exists(semaphore))
    rows = _rows(BlockedExecution, database).filter(free)
    shown = rows.values_list("pk", "concurrency_key")
    return named((shown, "job {}, blocked by {}".format))


def _tried_too_often(database: str) -> tuple[str, ...]:
    return named(
        *(
            offenders
            for state in WAITING
            for offenders in _above_the_limit(database, state)
        )
    )


def _above_the_limit(database: str, state: str) -> Iterator[Offenders]:
    rows = _rows(WAITING[state], database)
    tried_again = rows.filter(attempts__gt=1).values_list("job__task_path")
    for path, most in tried_again.annotate(most=Max("attempts")).order_by():
        allowed = getattr(registry.find(path), "max_attempts", None)
        if allowed is not None and most > allowed:
            above = rows.filter(job__task_path=path, attempts__gt=allowed)
            describe = f"job {{}} ({path}) is {state} after {{}} of {allowed}".format
            yield above.values_list("pk", "attempts"), describe


def _rows(model: type[Model], database: str) -> QuerySet[Any]:
    return model._default_manager.using(database).order_by("pk")
