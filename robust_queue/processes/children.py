"""Children as their supervisor knows them: from the fork to the end."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from signal import SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM
from uuid import UUID, uuid4

from robust_queue.configuration import current
from robust_queue.models.processes import name_of

from . import child, clock
from .connections import close_all
from .exits import ExitCode
from .heart import trust_span
from .notes import withheld
from .page import Page
from .posts import SETTLED_AFTER, Post


@dataclass(slots=True, kw_only=True)
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
        # It has not been waited for, so the number is still its own.
        os.kill(self.pid, number)

    def dismiss(self) -> None:
        """Make it leave at once."""
        if self.dismissed is None:
            self.dismissed = clock.now()
            self.signal(SIGQUIT)

    def has_ended(self) -> bool:
        """Collect its end, if it has come."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.exit_code = os.waitstatus_to_exitcode(status)
        return bool(pid)

    @property
    def was_dismissed(self) -> bool:
        """Was it asked to leave while its tasks ran, by whomever?"""
        # Not by its exit code: a task may exit with any.
        return self.dismissed is not None or self.page.is_leaving

    @property
    def may_hold_claims(self) -> bool:
        """Did it end without having settled everything?"""
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

    def has_lost_trust(self) -> bool:
        """Has it not reached the database for too long to be still believed?"""
        span = trust_span(current().process_alive_threshold)
        return self.page.is_up and clock.now() > self.page.last_beat + span


def fork(
    post: Post, *, supervisor_id: UUID, lifeline: int, on_birth: Callable[[], None]
) -> Child:
    """Fill a post. Returns in the parent only."""
    identity, page, supervisor_pid = uuid4(), Page(post.slots), os.getpid()
    close_all()
    # What waits in a buffer would be written by each child as well.
    sys.stdout.flush()
    sys.stderr.flush()
    with withheld(SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD):
        pid = os.fork()
        if not pid:
            _begin_life(
                on_birth,
                child.Birth(
                    post=post,
                    identity=identity,
                    supervisor_id=supervisor_id,
                    page=page,
                    lifeline=lifeline,
                    supervisor_pid=supervisor_pid,
                ),
            )
    return Child(post=post, pid=pid, identity=identity, page=page)


def _begin_life(on_birth: Callable[[], None], birth: child.Birth) -> None:
    try:
        on_birth()
    finally:
        child.live(birth)
