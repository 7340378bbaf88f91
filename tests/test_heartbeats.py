"""Heartbeats are stamped and compared in UTC, whatever USE_TZ says."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from robust_queue.doctor import activity
from robust_queue.models import Process

pytestmark = pytest.mark.django_db

MINUTES = timedelta(minutes=5)
SECONDS = timedelta(seconds=30)


@pytest.fixture(params=[True, False], ids=["USE_TZ", "wall time"])
def use_tz(request, settings):
    settings.USE_TZ = request.param
    return request.param


@pytest.fixture
def set_clocks(settings):
    """Changes the zone of this process and of its session, as hosts do in spring."""

    def set_to(hours):
        settings.TIME_ZONE = f"Etc/GMT{-hours:+d}"  # POSIX counts the other way round
        if connection.vendor == "mysql":
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION time_zone = %s", [f"{hours:+03d}:00"])

    yield set_to
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION time_zone = DEFAULT")


def stored():
    """The last heartbeat in UTC, as it is kept."""
    # What PostgreSQL keeps is an instant, which it shows in the zone of the session.
    zone = " AT TIME ZONE 'UTC'" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT last_heartbeat_at{zone} FROM robust_queue_processes")
        (moment,) = cursor.fetchone()
    return datetime.fromisoformat(str(moment)).replace(tzinfo=UTC)


@pytest.mark.parametrize("hours", [-5, 0, 7])
def test_a_heartbeat_is_kept_in_utc_and_read_like_any_moment(use_tz, set_clocks, hours):
    set_clocks(hours)
    process = Process.objects.register("Worker", identity=uuid4())
    for _ in range(2):
        assert abs(stored() - datetime.now(UTC)) < SECONDS
        row = Process.objects.get()
        assert timezone.is_aware(row.last_heartbeat_at) is use_tz
        assert abs(row.last_heartbeat_at - timezone.now()) < SECONDS
        assert abs(row.created_at - timezone.now()) < SECONDS
        assert Process.objects.beat(process.pk)


def test_nobody_falls_silent_when_the_clocks_change(use_tz, set_clocks):
    set_clocks(1)
    Process.objects.register("Worker", identity=uuid4())
    for hours in (2, 1):  # spring, autumn
        set_clocks(hours)
        assert Process.objects.heard_within(MINUTES).exists()
        assert not Process.objects.silent_for(MINUTES).exists()


def test_the_silent_are_found_and_told_in_wall_time(use_tz, set_clocks):
    set_clocks(7)
    process = Process.objects.register("Worker", identity=uuid4())
    moment = timezone.now() - timedelta(hours=1)
    Process.objects.filter(pk=process.pk).update(last_heartbeat_at=moment)
    assert abs(stored() - datetime.now(UTC) + timedelta(hours=1)) < SECONDS
    assert Process.objects.silent_for(MINUTES).exists()
    assert Process.objects.filter(last_heartbeat_at=moment).exists()
    (finding,) = activity._silent(Process.objects.silent_for(MINUTES))
    assert f"last heard of at {moment}" in finding.rows[0]
