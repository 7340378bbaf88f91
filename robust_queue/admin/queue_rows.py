"""Queues as their page shows them: what waits, who comes for it, what is done."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from robust_queue.lifecycle.queues import QueueStatus
from robust_queue.lifecycle.service import (
    IdleServer,
    QueuePage,
    ServedQueue,
    queue_page,
)
from robust_queue.lifecycle.statistics import Point, sparklines
from robust_queue.lifecycle.workers import WorkerStatus
from robust_queue.models import Process

from . import display
from .charts import sparkline
from .databases import database_of

# Workers of a queue that are named; a hundred names would hide the rest of the page.
NAMED = 5
LONGEST_NAME = 128
MOST_DIGITS = 9


def facts(site: AdminSite, request: HttpRequest) -> dict[str, Any]:
    """A page of queues, as the address asks for it."""
    database, name = database_of(request), request.GET.get("name", "")[:LONGEST_NAME]
    found = queue_page(database, page=_page_in(request), contains=name)
    drawn = sparklines(database, [each.status.name for each in found.rows])
    return {
        "found": found,
        "name": name,
        "rows": [_row(site, each, found, drawn) for each in found.rows],
        "unserved": _listed(found.unserved),
        "only_quiet": _listed(found.only_quiet),
        "idle": [_idle(site, each) for each in found.idle],
        "earlier": _way(name, found.number - 1) if found.number > 1 else "",
        "later": _way(name, found.number + 1) if found.number < found.pages else "",
    }


def _page_in(request: HttpRequest) -> int:
    text = request.GET.get("page", "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
    return int(text) if is_number else 1


def _way(name: str, page: int) -> str:
    return "?" + urlencode({"name": name, "page": page} if name else {"page": page})


def _row(
    site: AdminSite,
    queue: ServedQueue,
    page: QueuePage,
    drawn: Mapping[str, Sequence[Point]],
) -> dict[str, Any]:
    status = queue.status
    points = drawn[status.name]
    return {
        "queue": status,
        "name": display.plain(status.name),
        "address": display.list_url(site, "job", urlencode({"queue": status.name})),
        "ready": shown_ready(status, page.counted_to, points),
        "running": number_format(status.running, force_grouping=True),
        "latency": _latency(queue, page.counted_to, points),
        "served_by": [_worker(site, each) for each in queue.served_by[:NAMED]],
        "others": max(len(queue.served_by) - NAMED, 0),
        "is_left_by_the_quiet": queue.is_left_by_the_quiet,
        **_done(points),
    }


def shown_ready(status: QueueStatus, counted_to: int, points: Sequence[Point]) -> str:
    """How many are ready. Of those that are not counted, what was told last."""
    number = status.ready
    if number <= counted_to:
        return number_format(number, force_grouping=True)
    told = [each.depth for each in points[-2:] if each.depth is not None]
    if told and told[-1] > counted_to:
        return f"≈ {number_format(told[-1], force_grouping=True)}"
    return f"{number_format(counted_to, force_grouping=True)}+"


def _latency(queue: ServedQueue, counted_to: int, points: Sequence[Point]) -> str:
    """For how long the oldest waits, who may be behind those that were looked at."""
    if not queue.status.ready:
        return ""
    told = [each.latency for each in points[-2:] if each.latency is not None]
    is_cut = queue.status.ready > counted_to
    longest = max([queue.status.latency, *told] if is_cut else [queue.status.latency])
    return display.duration(longest)


def depth_of_late(points: Sequence[Point]) -> dict[str, Any]:
    """How many were ready, minute by minute."""
    depths = [each.depth for each in points]
    known = [each for each in depths if each is not None]
    if not known:
        return {"spark": ""}
    most = number_format(max(known), force_grouping=True)
    return {"spark": sparkline(depths, _("Ready in the last hour: %s at most") % most)}


def _done(points: Sequence[Point]) -> dict[str, Any]:
    finished = sum(each.finished for each in points)
    per_minute = number_format(finished / len(points), 1, force_grouping=True)
    label = _("Finished per minute, in the last hour: %s on average") % per_minute
    # The last minute is not over, and would look like a fall.
    values = [each.finished for each in points if each.is_complete]
    return {
        "per_minute": per_minute if finished else "",
        "spark": sparkline(values, label) if finished else "",
    }


def _worker(site: AdminSite, worker: WorkerStatus) -> dict[str, Any]:
    link = display.link(site, Process, worker.id, display.plain(worker.name))
    how = {"is_quiet": worker.is_quiet, "is_external": worker.is_external}
    return {"link": link, **how}


def _idle(site: AdminSite, idle: IdleServer) -> dict[str, Any]:
    queues = [display.plain(each) for each in idle.queues]
    return {**_worker(site, idle.worker), "queues": queues}


def _listed(names: Sequence[str]) -> dict[str, Any]:
    shown = [display.plain(each) for each in names[:NAMED]]
    return {"names": shown, "others": len(names) - len(shown)}
