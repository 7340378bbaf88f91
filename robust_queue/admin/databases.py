"""Which database is looked at, where several of them hold queues.

It is chosen for a whole session. The addresses of pages stay the same, and so do the
links between them, also those that the admin makes itself.
"""

from django.db import router
from django.db.models import Model
from django.http import HttpRequest

from robust_queue.aliases import backends
from robust_queue.models import Job

CHOICE = "robust_queue_database"


def database_of(request: HttpRequest) -> str:
    """The one that was chosen, or the one that the models are routed to."""
    chosen = request.session.get(CHOICE) if hasattr(request, "session") else None
    return str(chosen) if chosen in known() else router.db_for_read(Job)


def choose(request: HttpRequest, database: str) -> bool:
    """Look at this one from now on; False if it holds no queue."""
    if database not in known():
        return False
    request.session[CHOICE] = database
    return True


def has_changed(request: HttpRequest) -> bool:
    """Was another one chosen since the page was shown that a form comes from?

    The choice holds for all windows of a session, and elsewhere the same names and
    numbers are those of other rows.
    """
    shown = request.POST.get("database")
    return shown is not None and shown != database_of(request)


def known() -> list[str]:
    """The databases that hold queues, in the order of TASKS."""
    return list(dict.fromkeys(each.database for each in backends()))


def home_of(row: Model) -> str:
    """The database in which a row was found."""
    return str(row._state.db)
