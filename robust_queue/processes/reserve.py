"""The reserve: a post that is filled only when there is something for it to do.

A process that has nothing to do takes memory all the same.
"""

from collections.abc import Callable

from . import clock
from .actor import jittered
from .posts import Post

BETWEEN_LOOKS = 30.0


class Reserve:
    """Waits until it is needed, and is then called up once."""

    def __init__(self, post: Post, is_needed: Callable[[], bool]) -> None:
        self._post: Post | None = post
        self._is_needed = is_needed
        self._next_look = 0.0

    def call_up(self, ask: Callable[[Callable[[], bool]], bool]) -> Post | None:
        """Return the post if it is time to look, and it is needed."""
        if self._post is None or clock.now() < self._next_look:
            return None
        self._next_look = clock.now() + jittered(BETWEEN_LOOKS)
        if not ask(self._is_needed):
            return None
        called, self._post = self._post, None
        return called
