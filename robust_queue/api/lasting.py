"""Answers that last: whoever is told something for minutes is looked at meanwhile."""

import time
from collections.abc import Iterator

from robust_queue.lifecycle.tokens import token_by_id

from .access import Caller
from .problems import unauthenticated

# Seconds between two looks; as long at most is told on what was revoked meanwhile.
EVERY = 1.0
# Seconds after which an answer is heard of again. Our client waits for ten, proxies for
# thirty or more; the next look may take its time, too.
LONGEST_SILENCE = 5.0


class Watch:
    """Knows whether somebody may still be told."""

    def __init__(self, database: str, caller: Caller) -> None:
        self._database = database
        self._token = caller.token
        self._next_look = time.monotonic() + EVERY

    def look(self) -> None:
        """A problem if the token has come to its end. A session is not looked at."""
        now = time.monotonic()
        if self._token is None or now < self._next_look:
            return
        self._next_look = now + EVERY
        if token_by_id(self._database, self._token.pk) is None:
            raise unauthenticated("The token has expired or was revoked.")


def never_silent(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same lines, and an empty one wherever there was nothing to tell for long."""
    heard_at = time.monotonic()
    for block in blocks:
        is_silent = time.monotonic() - heard_at >= LONGEST_SILENCE
        told = b"\n" if is_silent and not block else block
        if told:
            heard_at = time.monotonic()
        yield told
