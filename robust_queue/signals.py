"""What happens to processes, queues and attempts, as Django's signals.

Django's own three signals tell of tasks; these tell of the rest. All of them are sent
by :func:`tell`: whoever listens cannot harm what it hears of.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import ReferenceType

from asgiref.sync import async_to_sync
from django.dispatch import Signal

from robust_queue.reports import report
from robust_queue.transactions import closed_behind

Receiver = TypeVar("Receiver", bound=Callable[..., Any])

# Of a worker, dispatcher, scheduler or supervisor, whose class is the sender. Each has
# the keyword ``process``, a ProcessFacts.
process_started = Signal()  # it is registered, and about to work
process_stopping = Signal()  # it begins to stop
process_exited = Signal()  # the last thing before an orderly end
# It is gone and another one takes its place; with ``reason``, a text. Sent by the
# supervisor.
process_replaced = Signal()

# When the change is committed. With ``queue_name`` and ``database``; the sender is the
# model Pause.
queue_paused = Signal()
queue_resumed = Signal()

# An attempt is over and another one follows. With ``task_result``, ``error`` (None if
# only its text is known), ``reason`` (that text, in one line), ``duration`` in seconds
# and ``retry_at``; the sender is the class of the backend.
attempt_failed = Signal()

# A task has asked for a later moment. With ``task_result``, ``reason`` (its text, or
# none) and ``until``; the sender is the class of the backend.
attempt_snoozed = Signal()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """Which process it is that a signal tells of."""

    kind: str
    name: str
    pid: int
    database: str
    # What it does, such as queues and threads; of one that has ended, its exit_code.
    details: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def tell(signal: Signal, sender: object, **facts: Any) -> None:
    """Send a signal. Whatever a receiver raises is reported, and the next has its turn.

    Unlike ``send_robust()``, which is ended by a ``SystemExit``.
    """
    if not signal.receivers:
        return
    at_once, awaited = signal._live_receivers(sender)
    for receiver in [*at_once, *map(async_to_sync, awaited)]:
        try:
            receiver(signal=signal, sender=sender, **facts)
        except BaseException as error:
            report(error, f"{_name_of(receiver)} was told of a signal")


def has_listeners(signal: Signal) -> bool:
    """Is there anybody who listens, to whomever, other than those who rest?"""
    return any(True for _ in awake(signal))


def awake(signal: Signal) -> Iterator[Callable[..., Any]]:
    """Those who listen, to whomever, other than those who rest."""
    for _, receiver, *_ in signal.receivers:
        found = receiver() if isinstance(receiver, ReferenceType) else receiver
        if found is not None and not _rests(found):
            yield found


def rests_while(is_resting: Callable[[], bool]) -> Callable[[Receiver], Receiver]:
    """For a receiver that has nothing to do while this is true."""

    def mark(receiver: Receiver) -> Receiver:
        receiver.rq_rests = is_resting  # type: ignore[attr-defined]
        return receiver

    return mark


def told_briefly(tell: Callable[..., None]) -> Callable[[Receiver], Receiver]:
    """For a receiver of ``task_finished`` that needs no result to hear of a success.

    Most of what it costs to tell of one is the result. ``tell`` is given the claim and
    the outcome instead, if nobody else listens.
    """

    def mark(receiver: Receiver) -> Receiver:
        receiver.rq_briefly = tell  # type: ignore[attr-defined]
        return receiver

    return mark


def brief_ways(signal: Signal) -> list[Callable[..., None]] | None:
    """How to tell all who listen briefly; None if somebody wants to hear it all."""
    ways = [getattr(receiver, "rq_briefly", None) for receiver in awake(signal)]
    return None if None in ways else ways  # type: ignore[return-value]


def _rests(receiver: Callable[..., Any]) -> bool:
    is_resting = getattr(receiver, "rq_rests", None)
    return is_resting is not None and is_resting()


def tell_of_process(
    signal: Signal, sender: object, process: ProcessFacts, **facts: Any
) -> None:
    """Send a signal of a process. Who hears it may query, where the queue does."""
    with nothing_left_open(f"A hook or receiver of {process}"):
        tell(signal, sender, process=process, **facts)


@contextmanager
def nothing_left_open(who: str) -> Iterator[None]:
    """For a block that tells somebody something, and raises nothing.

    A transaction that is left open there would swallow what others write.
    """
    try:
        with closed_behind(who):
            yield
    except RuntimeError as error:
        report(error, "somebody was told something")


def _name_of(receiver: Callable[..., Any]) -> str:
    called = getattr(receiver, "awaitable", receiver)  # what async_to_sync() wraps
    named = called if hasattr(called, "__qualname__") else type(called)
    return f"{named.__module__}.{named.__qualname__}"
