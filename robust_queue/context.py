"""What surrounds a running task: its job, and the enqueuer's language and time zone.

Everything is kept in context variables, so each thread and each coroutine has its own.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from datetime import timezone as fixed_offset
from functools import cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.utils import timezone, translation

from .compat import AnyResult, AnyTask, context_class
from .exceptions import TaskCancelled

if TYPE_CHECKING:
    from .configuration import BackendOptions
    from .stores.rows import Claim

logger = logging.getLogger("robust_queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentJob:
    """The job in whose task this code runs."""

    id: str
    task: str
    queue: str
    attempt: int


def current_job() -> CurrentJob | None:
    """Return the job that runs here, or None outside of tasks."""
    here = _current.get()
    return here.job if here else None


def job_in(context: Context) -> CurrentJob | None:
    """Return the job that runs in that context, seen from outside."""
    there = context.get(_current)
    return there.job if there else None


def is_cancelled() -> bool:
    """Has somebody asked for the end of the job that runs here?"""
    here = _current.get()
    return here is not None and here.is_cancelled


def check_cancelled() -> None:
    """Raise ``TaskCancelled`` if somebody has asked for the end of this job."""
    here = _current.get()
    if here is not None:
        here.check_cancelled()


class Running:
    """A claim whose task runs. What is told of it is made for whoever asks."""

    __slots__ = ("_claim", "_job", "ends_at", "is_cancelled")

    def __init__(self, claim: "Claim") -> None:
        self._claim = claim
        self._job: CurrentJob | None = None
        # Set by others, and asked for by the task.
        self.is_cancelled = False
        # When its timeout or its deadline comes, whichever is first.
        self.ends_at: datetime | None = None

    def check_cancelled(self) -> None:
        """Raise ``TaskCancelled`` if somebody has asked for its end."""
        if self.is_cancelled:
            raise TaskCancelled("The job was cancelled while it ran.")

    @property
    def job(self) -> CurrentJob:
        if self._job is None:
            self._job = CurrentJob(
                id=str(self._claim.job_id),
                task=self._claim.task_path,
                queue=self._claim.queue_name,
                attempt=self._claim.attempts,
            )
        return self._job


def context_of(task: AnyTask, result: AnyResult, running: Running) -> Any:
    """What a task that takes its context is given: Django's, and more.

    ``cancelled`` and ``check_cancelled()`` tell whether somebody has asked for its end,
    ``deadline`` when its time is up.
    """
    kind = _class_of_contexts(context_class(task))  # type: ignore[arg-type]
    return kind(task_result=result, running=running)


@cache
def _class_of_contexts(base: type[Any]) -> type[Any]:
    # Known to other threads as well, to which a task may hand it.
    @dataclass(frozen=True, slots=True, kw_only=True)
    class TaskContext(base):  # type: ignore[misc]
        running: Running = field(repr=False, compare=False)

        @property
        def cancelled(self) -> bool:
            return self.running.is_cancelled

        def check_cancelled(self) -> None:
            self.running.check_cancelled()

        @property
        def deadline(self) -> datetime | None:
            return self.running.ends_at

    # It is the framework's to whoever asks where it comes from.
    TaskContext.__module__ = base.__module__
    return TaskContext


_current: ContextVar[Running | None] = ContextVar("robust_queue_job", default=None)


# ── In the worker ──────────────────────────────────────────────────────────────


def enter(claim: "Claim", running: Running | None = None) -> None:
    """Surround the task of a claim with what it should find, for good.

    To be called in a context that is the task's own: the language and the time zone
    that a task activates are not to be the next one's.
    """
    running = running or Running(claim)
    _current.set(running)
    if claim.metadata:
        _restore(claim.metadata, running.job)


def here() -> Running | None:
    """What runs here."""
    return _current.get()


@contextmanager
def running(claim: "Claim") -> Iterator[CurrentJob | None]:
    """Surround the task of a claim with what it should find, in somebody's context.

    Which is left as it was, whatever the task activates.
    """
    before = _current.get()
    language, zone = translation.get_language(), timezone.get_current_timezone()
    try:
        enter(claim)
        yield current_job()
    finally:
        if translation.get_language() != language:
            _go_back_to_language(language)
        if timezone.get_current_timezone() != zone:
            _go_back_to_zone(zone)
        _current.set(before)


def _restore(metadata: str, job: CurrentJob) -> None:
    recorded = recorded_in(metadata)
    for name, activate in (
        ("language", _activate_language),
        ("time_zone", _activate_zone),
    ):
        try:
            activate(recorded.get(name))
        except (LookupError, ValueError, TypeError, OSError, OverflowError):
            logger.warning(
                "%s runs without the %s of its enqueuer, %r, which is not known here"
                " (job %s).",
                job.task,
                name.replace("_", " "),
                recorded[name],
                job.id,
            )


def recorded_in(metadata: str) -> dict[str, Any]:
    """What was recorded; whoever wrote anything else did not mean this."""
    if not metadata:
        return {}
    try:
        found = json.loads(metadata)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _activate_language(code: Any) -> None:
    if code is not None:
        # Django would activate a language that it does not know, and speak another.
        translation.get_supported_language_variant(code)
        translation.activate(code)


def _activate_zone(zone: Any) -> None:
    match zone:
        case None:
            pass
        case str():
            timezone.activate(ZoneInfo(zone))
        case _:
            timezone.activate(fixed_offset(timedelta(minutes=zone)))


def _go_back_to_language(language: str | None) -> None:
    # Most had activated none, and shall go on to follow the settings.
    translation.deactivate()
    if language is None:
        translation.deactivate_all()
    elif translation.get_language() != language:
        translation.activate(language)


def _go_back_to_zone(zone: tzinfo) -> None:
    timezone.deactivate()  # likewise
    if timezone.get_current_timezone() != zone:
        timezone.activate(zone)


# ── In the enqueuer ────────────────────────────────────────────────────────────


def remembered(options: "BackendOptions") -> str:
    """Return what a new job has to remember of its enqueuer, as JSON, or nothing."""
    found: dict[str, str | float | None] = {}
    if options.restore_language:
        found["language"] = translation.get_language()
    if options.restore_time_zone:
        found["time_zone"] = _name_of(timezone.get_current_timezone())
    known = {name: value for name, value in found.items() if value is not None}
    return json.dumps(known, separators=(",", ":")) if known else ""


def remembering(metadata: str, **more: Any) -> str:
    """Return what a job remembers already, and more."""
    return json.dumps({**recorded_in(metadata), **more}, separators=(",", ":"))


def forgetting(metadata: str, name: str) -> str:
    """Return what a job remembers, but for one thing."""
    facts = recorded_in(metadata)
    left = {key: value for key, value in facts.items() if key != name}
    return json.dumps(left, separators=(",", ":"))


def _name_of(zone: tzinfo) -> str | float | None:
    """The name of a zone, or its offset in minutes if it has one for all times."""
    if isinstance(zone, fixed_offset):
        minutes = zone.utcoffset(None).total_seconds() / 60
        return int(minutes) if minutes.is_integer() else minutes
    return getattr(zone, "key", None)
