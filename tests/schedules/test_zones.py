"""Zones by name: the known ones, and no way to anything else."""

from zoneinfo import ZoneInfo, available_timezones

import pytest

from robust_queue.schedules import zone_named


def test_every_zone_that_there_is():
    for name in available_timezones():
        assert zone_named(name) is ZoneInfo(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("America/New York", "America/New_York"),
        ("UTC ", "UTC"),
        ("Europe", "Europe/"),
    ],
)
def test_a_name_that_is_nearly_right(name, meant):
    with pytest.raises(ValueError, match=f"is no time zone. Did you mean .*{meant}"):
        zone_named(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "\0",
        "\ud800",
        "../../etc/passwd",
        "/etc/passwd",
        "/usr/share/zoneinfo/UTC",
        "x" * 1_000_000,
        "Mars/Olympus_Mons",
        None,
        5,
        ["UTC"],
        b"UTC",
        ZoneInfo("UTC"),
    ],
    ids=lambda name: repr(name)[:20],
)
def test_a_name_that_is_none(name):
    with pytest.raises(ValueError, match="is no time zone") as caught:
        zone_named(name)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", ["right/UTC", "posix/UTC", "zone.tab", "tzdata.zi"])
def test_a_file_that_is_no_zone(name):
    with pytest.raises(ValueError, match="is no time zone"):
        zone_named(name)
