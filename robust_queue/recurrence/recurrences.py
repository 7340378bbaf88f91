"""What recurs: a task, a schedule, and everything that is said about its runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from robust_queue.compat import AnyTask
from robust_queue.recurring_settings import MISSED_LIMIT
from robust_queue.schedules import Schedule

from . import refusals

OnMissed: TypeAlias = Literal["skip", "run_once", "run_all"]
Overlap: TypeAlias = Literal["allow", "skip", "queue"]

ON_MISSED: tuple[str, ...] = get_args(OnMissed)
OVERLAPS: tuple[str, ...] = get_args(Overlap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A task, its schedule, and the arguments that it is to be called with.

    Whatever makes no sense is refused when it is made, so that it is found where it is
    declared and not at night.
    """

    key: str
    task: AnyTask
    schedule: Schedule
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    # None: the task's own.
    queue_name: str | None = None
    priority: int | None = None
    # None: Django's TIME_ZONE.
    timezone: str | None = None
    description: str = ""
    enabled: bool = True
    on_missed: OnMissed = "run_once"
    # Of those that were missed, so many are made up for by run_all: the latest.
    missed_limit: int = MISSED_LIMIT
    overlap: Overlap = "allow"
    # Each run begins up to so much later, to spread what is due at the same instant.
    jitter: timedelta = timedelta(0)
    # Module and line, for messages.
    place: str = "at run time"

    def __post_init__(self) -> None:
        refusals.check_key(self.key)
        refusals.check_schedule(self.schedule)
        refusals.check_zone(self.timezone)
        refusals.check_task(self.task)
        refusals.check_call(self.task, self.args, self.kwargs)
        refusals.check_queue(self.task, self.queue_name, self.priority)
        refusals.check_choice("on_missed", self.on_missed, ON_MISSED)
        refusals.check_choice("overlap", self.overlap, OVERLAPS)
        refusals.check_missed_limit(self.missed_limit)
        refusals.check_flag("enabled", self.enabled)
        refusals.check_text("description", self.description)
        object.__setattr__(self, "jitter", refusals.read_jitter(self.task, self.jitter))
        refusals.check_backend(self.task, self.overlap)

    def is_again(self, other: "Recurrence") -> bool:
        """Is this the same declaration, from a module that was imported again?"""
        return self._identity() == other._identity()

    def _identity(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        # Not the task itself: the second import has made another one of that path.
        return {**values, "task": self.task.module_path}


def recurrence_of(
    task: AnyTask,
    *,
    schedule: str | timedelta | Schedule,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Recurrence:
    """Make one of what a person has written; refuses what makes no sense."""
    parsed = schedule if isinstance(schedule, Schedule) else Schedule(schedule)
    refusals.check_arguments(args, kwargs)
    return Recurrence(
        task=task,
        schedule=parsed,
        args=tuple(args),
        kwargs=dict(kwargs or {}),
        **options,
    )
