"""Children as their supervisor knows them: from their birth to their end."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from uuid import UUID

from robust_queue.configuration import current
from robust_queue.models.processes import name_of

from . import clock
from .exits import ExitCode, in_words
from .heart import trust_span
from .page import Page
from .posts import SETTLED_AFTER, Post

LEAST_PATIENCE = 120.0
OVERDUE = "a task did not end although its time was up"


@dataclass(slots=True, kw_only=True, eq=False)
class Child(ABC):
    """Somebody who fills a post."""

    post: Post
    pid: int
    identity: UUID
    page: Page
    born: float = field(default_factory=clock.now)
    exit_code: int | None = None
    ended: float = math.inf
    # When it was told to leave at once: its end is then no fault of its tasks.
    dismissed: float | None = None
    killed_because: str | None = None
    # Who takes over when it is tired, from the moment of its birth.
    successor: "Child | None" = None
    # Its post is somebody else's by now, though it may still run tasks.
    is_relieved_of_post: bool = False

    @abstractmethod
    def ask_to_stop(self) -> None:
        """Make it stop in order, within the usual time unless it is relieved."""

    @abstractmethod
    def make_leave(self) -> None:
        """Make it leave without waiting for anything."""

    @abstractmethod
    def kill(self) -> bool:
        """End it, whatever it does; False if that is not possible."""

    @abstractmethod
    def collect(self) -> int | None:
        """How it has ended; None if it still lives."""

    def ended_at(self) -> float:
        """When it ended; called when it has."""
        return clock.now()

    @property
    def is_gone(self) -> bool:
        """Has it ended, though what belongs to it may not have?"""
        return False

    @property
    def name(self) -> str:
        return name_of(self.post.kind, self.identity, pid=self.pid)

    def dismiss(self) -> None:
        """Make it leave at once."""
        if self.dismissed is None:
            self.dismissed = clock.now()
            self.make_leave()

    def relieve(self) -> None:
        """Let it finish what runs, however long that takes, and leave."""
        self.page.show_relieved()
        self.ask_to_stop()

    def has_ended(self) -> bool:
        """Collect its end, if it has come."""
        self.exit_code = self.collect()
        if self.exit_code is not None:
            self.ended = self.ended_at()
        return self.exit_code is not None

    @property
    def end_in_words(self) -> str:
        return self.killed_because or in_words(self.exit_code or 0)

    @property
    def was_dismissed(self) -> bool:
        """Was it asked to leave while its tasks ran, by whomever?"""
        # Not by its exit code: a task may exit with any.
        return self.dismissed is not None or self.page.is_leaving

    @property
    def was_overdue(self) -> bool:
        """Was it killed because one of its tasks did not end in time?"""
        return self.killed_because == OVERDUE

    @property
    def may_hold_claims(self) -> bool:
        """Did it end without having settled everything, and did nobody do so since?"""
        if self.page.is_buried:
            return False
        return self.exit_code != ExitCode.DONE or any(self.page.records())

    @property
    def is_replaced(self) -> bool:
        """Is its successor at work?"""
        heir = self.successor
        return heir is not None and heir.page.is_up and heir.killed_because is None

    @property
    def has_settled_in(self) -> bool:
        """Has it lived long enough to be taken for sound?"""
        return clock.now() - self.born > SETTLED_AFTER

    def is_stuck_in_boot(self) -> bool:
        if self.page.is_up:
            return False
        last_seen = max(self.born, self.page.last_sign_of_life)
        patience = current().process_boot_timeout.total_seconds()
        return clock.now() - last_seen > patience

    def is_stuck(self) -> bool:
        """Has its main thread not come around for much longer than anything takes?"""
        patience = max(
            current().process_alive_threshold.total_seconds(), LEAST_PATIENCE
        )
        return self.page.is_up and clock.now() - self.page.last_turn > patience

    def is_overdue(self) -> bool:
        """Has a task not ended although its time was up, not even when interrupted?"""
        grace = current().timeout_grace.total_seconds()
        return self.page.is_up and self.page.has_overdue(grace)

    def has_lost_trust(self) -> bool:
        """Has it not reached the database for too long to be still believed?"""
        span = trust_span(current().process_alive_threshold)
        return self.page.is_up and clock.now() > self.page.last_beat + span
