"""Rollups of the last week, as a day in a shop goes: quiet nights, busy evenings."""

from datetime import UTC, datetime, timedelta
from math import sin
from uuid import uuid4

from django.utils import timezone

from robust_queue.lifecycle.durations import Durations, step_of
from robust_queue.models import Rollup
from robust_queue.models.rollups import EVERY_QUEUE

# How long each span is in seconds, and how many of it there are.
SPANS = {60: 60, 900: 96, 3600: 168}


def of_a_week(queues):
    """Minutes of the last hour, quarters of the last day, hours of the last week."""
    process_id = uuid4()
    now = timezone.now()
    rows = [
        _row(queue, share, span, _start(now, span, n), process_id)
        for span, number in SPANS.items()
        for n in range(number)
        for share, queue in enumerate([*queues, EVERY_QUEUE], start=1)
    ]
    Rollup.objects.bulk_create(rows, batch_size=200)


def _start(now, span, n):
    seconds = int(now.timestamp()) // span * span
    return datetime.fromtimestamp(seconds, tz=UTC) - timedelta(seconds=n * span)


def _row(queue, share, span, at, process_id):
    done = _busyness(at) * share * span // 60
    return Rollup(
        queue_name=queue,
        span=span,
        at=at,
        process_id=process_id,
        finished=done,
        failed=done // 40,
        waits=_histogram(done, timedelta(milliseconds=40 * _busyness(at))),
        runs=_histogram(done, timedelta(milliseconds=180 + 9 * _busyness(at))),
        depth=_busyness(at) * share * 3,
        latency=_busyness(at) * share * 120,
    )


def _histogram(number, usual):
    """Most are as usual, some take twice as long, and a few very long."""
    shares = {1: 80, 2: 16, 20: 4}
    counts = {
        step_of(factor * usual): number * share // 100
        for factor, share in shares.items()
    }
    return Durations({step: count for step, count in counts.items() if count}).text


def _busyness(at):
    """Waves over the hour and the day, and never twice the same."""
    minute = int(at.timestamp()) // 60
    waves = 3 * sin(minute / 11) + 3 * sin(minute / 230)
    return round(9 + waves + 4 * _noise(minute))


def _noise(minute):
    """A number between 0 and 1, the same each time that it is asked for."""
    return minute * 2_654_435_761 % 2**32 / 2**32
