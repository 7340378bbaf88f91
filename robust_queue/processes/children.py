"""Children as their supervisor knows them: from the fork to the end."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from signal import SIGQUIT
from typing import NoReturn
from uuid import UUID, uuid4

from robust_queue.configuration import current
from robust_queue.models.processes import name_of

from . import child, clock
from .exits import ExitCode, in_words
from .forking import exit_code_of, fork
from .heart import trust_span
from .page import Page
from .posts import SETTLED_AFTER, Post

LEAST_PATIENCE = 120.0


@dataclass(slots=True, kw_only=True, eq=False)
class Child:
    """A process that was forked for a post."""

    post: Post
    pid: int
    identity: UUID
    page: Page
    born: float = field(default_factory=clock.now)
    exit_code: int | None = None
    # When it was told to leave at once: its end is then no fault of its tasks.
    dismissed: float | None = None
    killed_because: str | None = None

    @property
    def name(self) -> str:
        return name_of(self.post.kind, self.identity, pid=self.pid)

    def signal(self, number: signal.Signals) -> None:
        # It has not been waited for, so the number is still its own, unless somebody
        # else has waited for it.
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def dismiss(self) -> None:
        """Make it leave at once."""
        if self.dismissed is None:
            self.dismissed = clock.now()
            self.signal(SIGQUIT)

    def has_ended(self) -> bool:
        """Collect its end, if it has come."""
        self.exit_code = exit_code_of(self.pid)
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
    def may_hold_claims(self) -> bool:
        """Did it end without having settled everything, and did nobody do so since?"""
        if self.page.is_buried:
            return False
        return self.exit_code != ExitCode.DONE or any(self.page.records())

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

    def has_lost_trust(self) -> bool:
        """Has it not reached the database for too long to be still believed?"""
        span = trust_span(current().process_alive_threshold)
        return self.page.is_up and clock.now() > self.page.last_beat + span


def beget(
    post: Post, *, supervisor_id: UUID, lifeline: int, on_birth: Callable[[], None]
) -> Child:
    """Fill a post."""
    birth = child.Birth(
        post=post,
        identity=uuid4(),
        supervisor_id=supervisor_id,
        page=Page(post.slots, slot_size=post.slot_size),
        lifeline=lifeline,
        supervisor_pid=os.getpid(),
    )
    pid = fork(partial(_begin_life, on_birth, birth))
    return Child(post=post, pid=pid, identity=birth.identity, page=birth.page)


def _begin_life(on_birth: Callable[[], None], birth: child.Birth) -> NoReturn:
    try:
        on_birth()
    finally:
        child.live(birth)
