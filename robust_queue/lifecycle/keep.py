"""How long a job is kept once it has ended: as its task says, else as the settings do.

Nobody walks along all jobs to find the few whose time is up. What is kept equally long
is one rule, and for each rule the time is up for all that is older than one moment.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from robust_queue import registry
from robust_queue.aliases import backends_of, options_of
from robust_queue.backoffs import LONGEST_DELAY
from robust_queue.configuration import current
from robust_queue.policies import Kind
from robust_queue.stores.clearing import State
from robust_queue.stores.rows import EndedJob

from .policy import policy_for


def kept_for(state: State, job: EndedJob) -> timedelta | None:
    """How long this job is kept, from its end on; None: for ever."""
    said: timedelta | None = getattr(policy_for(job), _POLICIES[state])
    if said is not None:
        return said
    if state == "finished" or _is_wanted(job.kind):
        return current().clear_finished_jobs_after
    return current().clear_failed_jobs_after


class Rule(NamedTuple):
    """Jobs that have ended in the same way, and are kept equally long."""

    state: State
    age: timedelta

    def covers(self, job: EndedJob) -> bool:
        return kept_for(self.state, job) == self.age

    def before(self, now: datetime) -> datetime:
        """Whatever ended before that has been kept for long enough."""
        return now - self.age


def rules(database: str) -> list[Rule]:
    """Every rule that may cover a job of this database, the shortest times first."""
    ages = {
        Rule(state, age)
        for state in _POLICIES
        for age in _ages(database, state)
        # Longer is for ever: no database has moments that old.
        if age is not None and age <= LONGEST_DELAY
    }
    return sorted(ages, key=lambda rule: (rule.age, rule.state))


def _ages(database: str, state: State) -> Iterator[timedelta | None]:
    yield current().clear_finished_jobs_after
    if state == "failed":
        yield current().clear_failed_jobs_after
    for policy in (*_defaults(database), *registry.discover().values()):
        yield getattr(policy, _POLICIES[state], None)


def _defaults(database: str) -> Iterator[Any]:
    # Jobs of an alias that was taken out of TASKS go by the setting alone.
    said: list[Any] = [options_of(each.alias) for each in backends_of(database)]
    for options in (current(), *said):
        yield options.task_defaults
        yield from options.queue_defaults.values()


def _is_wanted(kind: str) -> bool:
    # Code of a later version may know further kinds.
    return kind in frozenset(Kind) and Kind(kind).is_wanted


_POLICIES: dict[State, str] = {"finished": "keep_result", "failed": "keep_failure"}
