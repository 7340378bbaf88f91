"""How many statements a server is sent, as the server itself counts them.

Only of a server of the test's own: others would be sent those of other tests as well.
What the connection of the test sends is left out, which is also the one that asks.
"""

import re
from contextlib import contextmanager

from django.db import connection

# Whether sent at once, or prepared and then executed.
LOGGED = re.compile(rb"^.*\[(\d+)\] LOG:  (?:statement|execute [^:]+): ", re.MULTILINE)


class StatementCount:
    """What others have sent during a block, once it is over."""

    number = 0


@contextmanager
def statement_count(server):
    """Count the statements that others than this connection send during the block."""
    asked = {"postgresql": _logged_by_others, "mysql": _asked_by_others}
    number_so_far = asked[connection.vendor]
    count, before = StatementCount(), number_so_far(server)
    yield count
    count.number = number_so_far(server) - before


def _logged_by_others(server):
    own = _first_number("SELECT pg_backend_pid()")
    pids = LOGGED.findall(server.log.read_bytes())
    return sum(int(pid) != own for pid in pids)


def _asked_by_others(server):
    everybody, own = (
        _first_number(f"SHOW {scope} STATUS LIKE 'Questions'")
        for scope in ("GLOBAL", "SESSION")
    )
    return everybody - own


def _first_number(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[-1])
