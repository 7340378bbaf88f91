"""Counting what is sent to the database."""

from contextlib import contextmanager

from django.db import connections
from django.test.utils import CaptureQueriesContext

_TRANSACTION_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "START")


class Statements(list):
    """The statements of a block, in order."""

    @property
    def changes(self):
        """Those that are not about the transaction itself."""
        return [sql for sql in self if not sql.startswith(_TRANSACTION_CONTROL)]


@contextmanager
def statements(using="default"):
    """Collects the statements that the block sends."""
    found = Statements()
    with CaptureQueriesContext(connections[using]) as context:
        yield found
    found.extend(query["sql"].strip() for query in context.captured_queries)
