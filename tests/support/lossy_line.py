"""A line to the database server on which replies get lost.

The server has done what it was asked for; whoever asked finds the line broken.
"""

import random

from django.db import connections

from tests.support.lines import Call, Line, opened

# What a client sends when it changes something, on PostgreSQL and on MariaDB.
CHANGES = {
    "postgresql": (b"INTO robust_queue_claimed", b"INTO robust_queue_finished"),
    "mysql": (b"COMMIT",),
}


class LossyLine(Line):
    """Passes everything on, and forgets some of the replies to changes."""

    def __init__(self, folder, *, probability, seed):
        super().__init__(folder)
        self._changes = CHANGES[connections["default"].vendor]
        self._probability = probability
        self._random = random.Random(seed)
        self.lost = 0

    def call(self, client, server):
        return LossyCall(self, client, server)

    def is_unlucky(self, request):
        is_change = any(change in request for change in self._changes)
        return is_change and self._random.random() < self._probability


class LossyCall(Call):
    """Is over with the first reply that gets lost."""

    def __init__(self, line, client, server):
        super().__init__(client, server)
        self._line = line
        self._is_to_be_lost = False

    def request(self, data):
        if self._line.is_unlucky(data):
            self._is_to_be_lost = True
        super().request(data)

    def reply(self, data):
        if self._is_to_be_lost:
            self._line.lost += 1
            raise ConnectionAbortedError
        super().reply(data)


def lossy_line(*, probability, seed=0):
    """A line for the block."""
    return opened(LossyLine, probability=probability, seed=seed)
