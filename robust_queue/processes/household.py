"""The household of a supervisor: its posts, and the children who fill them."""

import json
import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from robust_queue.signals import ProcessFacts, process_replaced, tell_of_process

from . import clock
from .books import Books
from .children import Child
from .exits import ExitCode
from .families import Family
from .posts import Post

logger = logging.getLogger("robust_queue")

SECONDS_TO_QUIT = 2.0


class Household:
    """Fills posts, replaces those who are tired or gone, parts with the dead."""

    def __init__(
        self,
        posts: Sequence[Post],
        *,
        family: Family,
        books: Books,
        supervisor_id: UUID,
        wake_supervisor: Callable[[], None],
    ) -> None:
        self._family = family
        self._books = books
        self._supervisor_id = supervisor_id
        self._wake_supervisor = wake_supervisor
        self._vacant = list(posts)
        self.children: list[Child] = []
        self.has_left_behind = False

    @property
    def is_complete(self) -> bool:
        """Is every post filled by somebody who is at work?"""
        return not self._vacant and all(each.page.is_up for each in self.children)

    @property
    def next_births(self) -> list[float]:
        """Seconds until each of the vacant posts may be filled."""
        return [each.patience.left for each in self._vacant]

    # ── Births ─────────────────────────────────────────────────────────────────

    def provide(self, post: Post) -> None:
        """Have one more post, to be filled like any other."""
        self._vacant.append(post)

    def fill_posts(self) -> None:
        for post in [each for each in self._vacant if each.patience.is_over]:
            if self._beget(post):
                self._vacant.remove(post)

    def relieve_the_tired(self) -> None:
        """Replace those that ask for it: first comes the successor, then the end."""
        for child in [each for each in self.children if each.page.is_tired]:
            if child.successor is None and self._may_be_replaced(child):
                child.post.tuning = child.page.tuning
                child.successor = self._beget(child.post)
            elif child.is_replaced and not child.is_relieved_of_post:
                child.is_relieved_of_post = True
                child.relieve()

    def _may_be_replaced(self, child: Child) -> bool:
        """One at a time: those who leave may still run as many tasks as ever."""
        is_one_leaving = any(
            each.is_relieved_of_post and each.post is child.post
            for each in self.children
        )
        is_early = self._is_waited_for(child) or not child.post.patience.is_over
        return not is_one_leaving and not is_early

    def _is_waited_for(self, child: Child) -> bool:
        """Is it a successor whose post is not yet its own?"""
        return any(
            each.successor is child and not each.is_relieved_of_post
            for each in self.children
        )

    def _beget(self, post: Post) -> Child | None:
        try:
            child = self._family.beget(
                post,
                supervisor_id=self._supervisor_id,
                wake_supervisor=self._wake_supervisor,
            )
        except (OSError, RuntimeError) as error:
            # No process, or no thread, can be started at the moment.
            pause = post.patience.fail()
            logger.error("Nobody is born, again in %.1f s: %s", pause, error)  # noqa: TRY400
            return None
        self.children.append(child)
        return child

    # ── Orders ─────────────────────────────────────────────────────────────────

    def ask_to_stop(self) -> None:
        """Make all stop within the usual time, also those who had no limit so far."""
        for child in self.children:
            child.page.show_relieved(is_relieved=False)
            child.ask_to_stop()

    def relieve(self) -> None:
        """Make all stop when what they run is over, however long that takes.

        Should that be called off, their posts are not to wait for their last task.
        """
        for child in self.children:
            child.page.show_tired()
            child.relieve()

    def dismiss(self) -> None:
        """Make all leave at once."""
        for child in self.children:
            child.dismiss()

    def press(self) -> None:
        """End those that were dismissed and are still here."""
        for child in list(self.children):
            if child.dismissed and clock.now() > child.dismissed + SECONDS_TO_QUIT:
                self._end(child)

    def kill(self, child: Child, reason: str) -> None:
        """End one that is stuck, since it will not do so itself."""
        if child.killed_because is not None:
            return
        child.killed_because = reason
        if child.kill():
            logger.error("%s is killed: %s.", child.name, reason)
        else:
            logger.error("%s is stuck: %s. Restart this process.", child.name, reason)

    def _end(self, child: Child) -> None:
        if not child.kill():
            # A thread that does not come around ends with this process.
            child.exit_code = ExitCode.LEFT_BEHIND
            self._part_with(child, is_running=False)

    # ── Deaths ─────────────────────────────────────────────────────────────────

    def reap(self, *, is_running: bool) -> None:
        """Collect those that have ended; in order if the supervisor is not running."""
        for child in [each for each in self.children if each.has_ended()]:
            self._part_with(child, is_running=is_running)

    def _part_with(self, dead: Child, *, is_running: bool) -> None:
        self.children.remove(dead)
        self._books.bury_later(dead)
        if not is_running and dead.was_dismissed and dead.page.has_running():
            self.has_left_behind = True
        if self._is_filled_without(dead):
            reason = f"{dead.end_in_words}; its post is filled"
        else:
            reason = f"{dead.end_in_words}; replaced in {self._vacate(dead):.1f} s"
        self._forget_successor(dead)
        if is_running:
            actor, facts = dead.post.actor, _facts(dead)
            tell_of_process(process_replaced, actor, facts, reason=reason)

    def _is_filled_without(self, dead: Child) -> bool:
        """Has its post passed on, or never been its own?"""
        has_heir = dead.successor in self.children
        return dead.is_relieved_of_post or has_heir or self._is_waited_for(dead)

    def _forget_successor(self, dead: Child) -> None:
        """Whoever waited for it has to wait for another one, and not at once."""
        for each in self.children:
            if each.successor is dead:
                each.successor = None
                if not each.is_relieved_of_post:
                    each.post.patience.fail()

    def _vacate(self, dead: Child) -> float:
        """Leave the post to a successor; return the seconds until one may come."""
        patience = dead.post.patience
        if dead.has_settled_in or dead.exit_code == ExitCode.DONE:
            patience.succeed()
        dead.post.tuning = dead.page.tuning
        self._vacant.append(dead.post)
        # The first successor comes nearly at once, later ones ever more slowly.
        return patience.fail()


def _facts(dead: Child) -> ProcessFacts:
    return ProcessFacts(
        kind=dead.post.kind,
        name=dead.name,
        pid=dead.pid,
        database=dead.post.database,
        details={**json.loads(dead.post.metadata), "exit_code": dead.exit_code},
    )
