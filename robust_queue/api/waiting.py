"""Waiting for jobs: a look when there is news, and now and then without any.

Nothing is held in between. Who waits keeps a thread of the server, and no more: of the
database neither a transaction nor what a pool has lent. A look is three or four short
reads, and writes nothing but a heartbeat every few seconds.
"""

import select
import socket
import time
from dataclasses import replace
from typing import Any, NamedTuple

from django.db import connections
from django.http import HttpRequest

from robust_queue.configuration import current
from robust_queue.lifecycle import enlist
from robust_queue.lifecycle.enlist import ExternalWorker, Pulse
from robust_queue.lifecycle.entrust import (
    Entrusted,
    Taken,
    Wanted,
    entrust,
    told_before,
)
from robust_queue.lifecycle.tokens import token_by_id

from .room import LAST_LOOK, Seat, rooms
from .sharing import shared

# Seconds for which the heartbeat of a worker holds that is known to wait.
FRESH_FOR = 10.0


class Look(NamedTuple):
    """What a look has come to."""

    pulse: Pulse
    taken: Taken = Taken([])


def awaited(
    request: HttpRequest,
    database: str,
    worker: ExternalWorker,
    wanted: Wanted,
    *,
    wait: float,
) -> tuple[Pulse, list[Entrusted]]:
    """Look until there are jobs or something new to be told, or the time is up."""
    look = _look(database, worker, wanted)
    first, until = look.pulse, time.monotonic() + min(wait, _longest(look.pulse))
    if look.taken.jobs or not wait:
        return look.pulse, look.taken.jobs
    room, wanted = rooms.of(database), replace(wanted, is_likely=False)
    # Who is quiet waits for other things than jobs.
    with room.seat(() if first.is_quiet else wanted.queues) as seat:
        while not _is_worth_telling(look, first) and time.monotonic() < until:
            if not look.taken.has_more:
                room.probe()
                _rest(database, seat, until - time.monotonic())
            if _has_hung_up(request) or not _may_still(database, worker):
                return look.pulse, []
            again = enlist.external_worker(database, worker.id, fresh_for=FRESH_FOR)
            if again is None:
                return Pulse(is_alive=False), []
            look = _look(database, again, wanted)
    return look.pulse, look.taken.jobs


def _may_still(database: str, worker: ExternalWorker) -> bool:
    """Is the token that let it in good for anything?

    It may have been revoked meanwhile, and then nothing is handed out any more.
    """
    return bool(worker.token_id and token_by_id(database, worker.token_id))


def _look(database: str, worker: ExternalWorker, wanted: Wanted) -> Look:
    pulse = enlist.ping(database, worker)
    if not pulse.is_alive:
        return Look(pulse)
    if pulse.is_quiet:
        # Nothing new. What it was told of before it has, whether or not it knows.
        return Look(pulse, Taken(told_before(database, worker, wanted.request_id)))
    turns = shared.of(database)
    taken = entrust(database, worker, replace(wanted, **turns.standing(wanted.queues)))
    turns.learn([each.claim for each in taken.jobs])
    return Look(pulse, taken)


def _longest(first: Pulse) -> float:
    if first.cancelled or first.orders.is_to_stop:
        # It is told soon. But not at once: it may know, and ask again and again while
        # it does what it was told.
        return LAST_LOOK
    return current().api_longest_wait.total_seconds()


def _is_worth_telling(look: Look, first: Pulse) -> bool:
    pulse = look.pulse
    return bool(
        look.taken.jobs
        or not pulse.is_alive
        or pulse.orders.is_to_stop != first.orders.is_to_stop
        or pulse.is_quiet != first.is_quiet
        or not set(pulse.cancelled).issubset(first.cancelled)
    )


def _rest(database: str, seat: Seat, longest: float) -> None:
    connection = connections[database]
    is_lent = connection.settings_dict["OPTIONS"].get("pool")
    if is_lent and not connection.in_atomic_block:
        # It goes back to the pool, which is soon empty if all who wait keep theirs.
        connection.close()
    seat.rest(longest)


def _has_hung_up(request: HttpRequest) -> bool:
    """Is nobody there any more who would hear of a job?

    Of the servers only gunicorn shows the connection to whoever asks. Elsewhere, and
    for the moment behind this look, there is the rule for answers that got lost.
    """
    door = request.META.get("gunicorn.socket")
    if door is None:
        return False
    try:
        # Asked first: where sockets are patched to wait for each other, so does this.
        return _has_word(door) and not door.recv(1, _PEEK)
    except (BlockingIOError, ValueError):
        return False  # it is silent, as it should be, or is encrypted
    except OSError:
        return True


_PEEK = socket.MSG_PEEK | socket.MSG_DONTWAIT


def _has_word(door: Any) -> bool:
    """Is there anything to be read, if only that nothing will come any more?"""
    poll = select.poll()
    poll.register(door, select.POLLIN)
    return bool(poll.poll(0))
