"""How many statements a server is sent, as the server itself counts them.

Only of a server of the test's own: others would be sent those of other tests as well.
What the connection of the test sends is left out, which is also the one that asks.
"""

import re
from contextlib import contextmanager

from django.db import connection

# Whether sent at once, or prepared and then executed.
LOGGED = re.compile(
    rb"^.*\[(\d+)\] LOG:  (?:statement|execute [^:]+): (\w+)", re.MULTILINE
)
ABOUT_ROWS = {b"SELECT", b"INSERT", b"UPDATE", b"DELETE", b"WITH"}
QUESTIONS = ["Questions"]
QUESTIONS_ABOUT_ROWS = ["Com_select", "Com_insert", "Com_update", "Com_delete"]


class StatementCount:
    """What others have sent during a block, once it is over."""

    number = 0


@contextmanager
def statement_count(server, *, about_rows=False):
    """Count the statements that others than this connection send during the block.

    All of them, or only those that are not about the session or the transaction.
    """
    asked = {"postgresql": _logged_by_others, "mysql": _asked_by_others}
    number_so_far = asked[connection.vendor]
    count, before = StatementCount(), number_so_far(server, about_rows=about_rows)
    yield count
    count.number = number_so_far(server, about_rows=about_rows) - before


def _logged_by_others(server, *, about_rows):
    own = _first_number("SELECT pg_backend_pid()")
    return sum(
        int(pid) != own and (verb in ABOUT_ROWS or not about_rows)
        for pid, verb in LOGGED.findall(server.log.read_bytes())
    )


def _asked_by_others(server, *, about_rows):
    names = QUESTIONS_ABOUT_ROWS if about_rows else QUESTIONS
    everybody, own = (
        sum(_first_number(f"SHOW {scope} STATUS LIKE '{name}'") for name in names)
        for scope in ("GLOBAL", "SESSION")
    )
    return everybody - own


def _first_number(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[-1])
