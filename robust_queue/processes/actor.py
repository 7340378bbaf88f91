"""What workers, dispatchers and schedulers have in common: they take turns."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from .page import Page

LONGEST_PAUSE = 5.0


def jittered(seconds: float) -> float:
    """About as long: processes that start together must not go on in step."""
    return seconds * random.uniform(0.75, 1.25)  # noqa: S311


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an actor is given by the life around it."""

    identity: UUID
    name: str
    page: Page
    # May it still think that its claims are its own?
    trusts: Callable[[], bool]
    wake: Callable[[], None]
    wake_supervisor: Callable[[], None]
    # Whose wishes count for it as well.
    supervisor_id: UUID | None = None
    # What it does is not what it did: its row, and its title, are to tell that.
    show: Callable[[Mapping[str, Any]], None] = lambda facts: None


class Actor(ABC):
    """The work of one process. Its errors are the business of whoever calls it."""

    kind: ClassVar[str]

    def __init__(self, database: str) -> None:
        self.database = database

    def prepare(self) -> None:  # noqa: B027
        """Do what has to be done before any thread or connection is there."""

    def start(self) -> None:  # noqa: B027 (not everybody has to)
        """Get ready for the first turn."""

    @abstractmethod
    def turn(self) -> float:
        """Do what there is to do; return the seconds until it should be asked again."""

    def recover(self) -> None:  # noqa: B027
        """Put right what an error in a turn may have left behind."""

    @property
    def is_busy(self) -> bool:
        """Is there work under way that ought to come to its end?"""
        return False

    def stop(self) -> None:  # noqa: B027
        """Begin nothing new; turns go on for as long as it is busy."""

    def give_up(self) -> None:  # noqa: B027
        """The time is up: end what can be ended, and leave the rest behind."""

    def finish(self, *, timeout: float) -> None:  # noqa: B027
        """End what was started; errands under way have so long to come to an end."""
