"""Calls of unique tasks ──▶ jobs that hold their keys, or whatever a conflict asks for.

Keys and jobs are written in one transaction. No error of the database is provoked to
find out who was first: within a transaction of the caller it would break that.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import connections, transaction
from django.utils import timezone

from robust_queue import registry
from robust_queue.compat import AnyResult, TaskResultDoesNotExist
from robust_queue.exceptions import DuplicateTaskError, EnqueueError, TaskDiscarded
from robust_queue.flow import Unique
from robust_queue.flow.keys import split
from robust_queue.policies import Kind
from robust_queue.stores import Store, store_for
from robust_queue.stores.conflicts import retried
from robust_queue.stores.operating import WAITING
from robust_queue.stores.rows import Claim, Holder, NewJob, NewLock

from . import results
from .admit import limits_of_ids, promote
from .failure import words_of

if TYPE_CHECKING:
    from .enqueue import Prepared

logger = logging.getLogger("robust_queue")

# As often holders may come and go while somebody tries to become one.
ROUNDS = 20


def insert(
    prepared: "Sequence[Prepared]", database: str, *, are_promised: bool = False
) -> "list[Prepared]":
    """Write jobs, unique ones among them; return those that are to run.

    The others show what has become of them in their results. Ids that are promised were
    given out before anybody could know of a conflict, so that something has to be
    stored under each of them.
    """
    is_callers = connections[database].in_atomic_block
    unique = [each for each in prepared if each.unique]
    raises = any(_policy(each).on_conflict == "raise" for each in unique)

    def change() -> _Decisions:
        # A savepoint is two round trips more, for those who may want to go on.
        with transaction.atomic(using=database, savepoint=raises):
            admission = _Admission(
                database, looks_first=is_callers, are_promised=are_promised
            )
            return admission.write(prepared)

    decided = retried(database, change)
    decided.show()
    return decided.admitted


def take_over(database: str, prepared: "Prepared", former: UUID) -> None:
    """Write a job in place of another one that is gone, whose key it may have.

    Part of a transaction. If somebody else has the key, ``DuplicateTaskError``.
    """
    if prepared.unique is None:
        store_for(database).insert([prepared.job])
        return
    store_for(database).evict({prepared.job.unique_key: former})
    strict = replace(prepared.unique, on_conflict="raise")
    _Admission(database).write([replace(prepared, unique=strict)])


def unlock_at_start(claim: Claim, *, database: str) -> None:
    """Let go of the key of a job that begins, if its task says so.

    Committed before the task's code runs: what is enqueued from then on is never taken
    for done by a job that has already looked. Whoever was told in an open transaction
    that this job waits keeps it from beginning until the commit, for the same reason.
    """
    if not claim.unique_key:
        return
    unique = getattr(registry.find(claim.task_path), "unique", None)
    if unique is not None and unique.ends_at_start:
        store_for(database).unlock(claim.unique_key, claim.job_id)


@dataclass(slots=True)
class _Decisions:
    """What becomes of each call. Nothing is shown before all of it is written."""

    admitted: "list[Prepared]" = field(default_factory=list)
    answers: "list[tuple[Prepared, AnyResult]]" = field(default_factory=list)
    discarded: "list[tuple[Prepared, TaskDiscarded]]" = field(default_factory=list)

    def show(self) -> None:
        for each, result in self.answers:
            each.result = result
        for each, error in self.discarded:
            logger.info("%s (job %s): %s", each.job.task_path, each.job.id, error)


class _Admission:
    """Finds out who may have which key, in one transaction."""

    def __init__(
        self, database: str, *, looks_first: bool = False, are_promised: bool = False
    ) -> None:
        self._database = database
        self._store: Store = store_for(database)
        self._looks_first = looks_first and self._store.locks_what_it_meets
        self._are_promised = are_promised
        self._now = timezone.now()

    def write(self, prepared: "Sequence[Prepared]") -> _Decisions:
        """Take keys and insert jobs; the first of several in one call has the key."""
        unique = [each for each in prepared if each.unique]
        for each in unique:
            each.job.has_slots = False  # whatever came of an attempt before this one
        first = {each.job.unique_key: each for each in reversed(unique)}
        for _ in range(ROUNDS):
            holders = self._lock(first)
            try:
                decided = self._decide(prepared, holders, first)
            except TaskResultDoesNotExist:
                continue  # it has ended, and is gone already
            self._store_all(decided)
            return decided
        raise _unsettled(first)

    # ── Keys ───────────────────────────────────────────────────────────────────

    def _lock(self, wanted: "Mapping[str, Prepared]") -> dict[str, Holder]:
        """Take each key that can be had; return who holds the others."""
        left = dict(sorted(wanted.items()))
        found = self._conflicts(left) if self._looks_first else {}
        for _ in range(ROUNDS):
            left = {key: each for key, each in left.items() if key not in found}
            if not left or self._store.lock_keys(list(map(_lock_of, left.values()))):
                return {k: v for k, v in found.items() if v.job_id != wanted[k].job.id}
            found |= self._conflicts(left)
        raise _unsettled(left)

    def _conflicts(self, wanted: "Mapping[str, Prepared]") -> dict[str, Holder]:
        """Who holds these keys and will not give way; perhaps the wanting job itself.

        What is missing is free, or about to be: then it is met again in the next round.
        """
        # Else a job that is about to begin might not see what the caller has written.
        keep = any(_policy(each).ends_at_start for each in wanted.values())
        held = sorted(self._store.holders(wanted, keep=keep).items())
        conflicts = {key: self._conflict(each, wanted[key]) for key, each in held}
        return {key: each for key, each in conflicts.items() if each is not None}

    def _conflict(self, holder: Holder, each: "Prepared") -> Holder | None:
        """Who holds the key of a call in the end; None if that cannot be told yet."""
        if holder.job_id == each.job.id:
            return holder
        if _is_to_be_replaced(holder, each):
            # Whoever claims it at this moment has it.
            if not self._made_way(holder.job_id, each.job):
                return None
        elif not holder.is_stale(self._now):
            return holder
        if not self._store.take_over(_lock_of(each), holder.job_id):
            return None
        return holder._replace(job_id=each.job.id)

    def _made_way(self, former: UUID, job: NewJob) -> bool:
        """Has a job that waited been deleted for another one?

        If both have the same keys, that one goes on with its slots. To give them back
        would keep everybody else from theirs, for as long as the caller's transaction.
        """
        limits = limits_of_ids(self._database, [former])
        keys = {each.key for each in limits}
        inherits = job.is_due and bool(keys) and keys == set(split(job.concurrency_key))
        state = self._store.make_way(former, keeps_slots=inherits)
        job.has_slots = inherits and state == "ready"
        if not inherits:
            # It may have had slots that others wait for.
            promote(self._database, limits)
        return bool(state)

    # ── Conflicts ──────────────────────────────────────────────────────────────

    def _decide(
        self,
        prepared: "Sequence[Prepared]",
        holders: Mapping[str, Holder],
        first: "Mapping[str, Prepared]",
    ) -> _Decisions:
        decided = _Decisions()
        for each in prepared:
            key = each.job.unique_key
            holder = holders.get(key)
            if holder is not None:
                self._refuse(each, holder, decided)
            elif each.unique and each is not first[key]:
                self._refuse(each, first[key], decided)
            else:
                decided.admitted.append(each)
        return decided

    def _refuse(
        self, each: "Prepared", other: "Holder | Prepared", decided: _Decisions
    ) -> None:
        """What becomes of a call whose key another one has."""
        policy = _policy(each).on_conflict
        if self._are_promised or policy == "discard":
            decided.discarded.append((each, TaskDiscarded(_words_for(each, other))))
        elif policy == "raise":
            is_stored = isinstance(other, Holder)
            result_id = str(_id_of(other)) if is_stored else None
            raise DuplicateTaskError(
                _words_for(each, other),
                result_id=result_id,
                refused_id=str(each.job.id),
            )
        elif isinstance(other, Holder):
            decided.answers.append((each, self._result_of(other, each)))
        else:
            decided.answers.append((each, other.result))

    def _result_of(self, holder: Holder, each: "Prepared") -> AnyResult:
        try:
            return results.get_result(self._database, holder.job_id)
        except TaskResultDoesNotExist:
            if not holder.is_of_a_period:
                raise
            # The period goes on, though nothing is left of its job but the id.
            return replace(each.result, id=str(holder.job_id))

    def _store_all(self, decided: _Decisions) -> None:
        if decided.admitted:
            self._store.insert([each.job for each in decided.admitted])
        if decided.discarded:
            failed = [(each.job, _recorded(error)) for each, error in decided.discarded]
            self._store.insert_failed(failed, now=self._now)
        for each, _ in decided.discarded:
            result = results.get_result(self._database, each.job.id)
            decided.answers.append((each, result))


def _policy(each: "Prepared") -> Unique:
    return each.unique or Unique()


def _is_to_be_replaced(holder: Holder, by: "Prepared") -> bool:
    return _policy(by).on_conflict == "replace" and holder.state in WAITING


def _lock_of(each: "Prepared") -> NewLock:
    job, period = each.job, _policy(each).period
    return NewLock(job.unique_key, job.id, job.enqueued_at + period if period else None)


def _id_of(other: "Holder | Prepared") -> UUID:
    return other.job_id if isinstance(other, Holder) else other.job.id


def _words_for(each: "Prepared", other: "Holder | Prepared") -> str:
    return (
        f"{each.job.task_path} is unique, and job {_id_of(other)} has its key "
        f"{each.job.unique_key}."
    )


def _recorded(error: TaskDiscarded) -> Sequence[str]:
    return (Kind.DISCARDED.value, *words_of(error))


def _unsettled(wanted: Iterable[str]) -> EnqueueError:
    return EnqueueError(
        f"The unique keys {', '.join(sorted(wanted))} could not be had: again and "
        "again somebody else came and went. Try again."
    )
