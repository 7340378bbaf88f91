"""Something of everything, to be looked at in the dashboard for as long as it is open.

The scenes before have left jobs that finished and failed. What is here waits, runs for
long, is paused, or recurs.
"""

from datetime import timedelta
from uuid import uuid4

from django.core.management import CommandError
from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone

from robust_queue import (
    enqueue_all,
    pause_recurring,
    pause_task,
    queue,
    run_recurring_now,
    schedule_recurring,
)
from robust_queue.lifecycle import operations
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.tokens import create_token
from robust_queue.models import Operation

from .demonstration import PHOTOS
from .tasks import (
    CardDeclinedError,
    charge_card,
    count_warehouse,
    draw_label,
    greet_customer,
    nightly_report,
    print_catalogue,
    rebuild_index,
    resize_photo,
    strike_bell,
    write_letter,
)
from .web import Program

# Longer than anybody looks.
MINUTES = 60
HALLS = 4
NAMES = ("Ada", "Grace", "Hedy", "Katherine", "Radia")
TOWN = "London"


def put_up() -> str:
    """Enqueue, pause and schedule; return the id of a job that is to be cancelled."""
    _what_waits()
    _what_is_paused()
    _what_recurs()
    enqueue_all(count_warehouse.bind(hall, MINUTES) for hall in range(1, HALLS + 1))
    return print_catalogue.enqueue(MINUTES).id


def let_somebody_draw() -> str:
    """Make a token for the program that draws labels, and return its text."""
    scopes = ["work:labels", f"enqueue:{draw_label.module_path}"]
    _, text = create_token(DEFAULT_DB_ALIAS, name="labels", scopes=scopes)
    return text


def order_a_label(program: Program) -> None:
    """As a program does that has not heard the answer: it is ordered once."""
    order = {
        "task": draw_label.module_path,
        "args": [len(NAMES), ["Alan", TOWN]],
        "request_id": str(uuid4()),
    }
    first, second = program.enqueue(order), program.enqueue(order)
    if first != second:
        raise CommandError(f"One label was ordered twice: {first} and {second}.")


def retry_the_declined(database: str, by: str) -> Operation:
    """Have all cards that were declined charged again. They are declined again."""
    error = f"{CardDeclinedError.__module__}.{CardDeclinedError.__qualname__}"
    search = JobSearch(state="failed", task=charge_card.module_path, error=error)
    return operations.request(database, "retry", search, requested_by=by)


def _what_waits() -> None:
    """For its time, or for somebody who serves its queue."""
    for hours, name in enumerate(NAMES, start=1):
        greet_customer.using(run_after=timedelta(hours=hours)).enqueue(name)
    enqueue_all(write_letter.bind(name) for name in NAMES)
    enqueue_all(draw_label.bind(n, [name, TOWN]) for n, name in enumerate(NAMES))


def _what_is_paused() -> None:
    queue("photos").pause()
    for width in (320, 640, 1280):
        enqueue_all(resize_photo.bind(n, size, width) for n, size in PHOTOS.items())
    pause_task(rebuild_index)
    rebuild_index.enqueue()


def _what_recurs() -> None:
    schedule_recurring("opening bell", strike_bell, schedule="every 10 seconds")
    today = timezone.localdate()
    schedule_recurring("report", nightly_report, schedule="@daily", args=[today])
    run_recurring_now("report")
    pause_recurring("report")
