"""What schedules do when clocks are turned, found the slow way, by the written rules.

The oracle walks through time step by step, reads the clock of a zone, and keeps to the
letter of ``robust_queue.schedules.daylight``. It shares nothing with what it judges.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from zoneinfo import ZoneInfo, available_timezones

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

SINCE, UNTIL = datetime(1990, 1, 1, tzinfo=UTC), datetime(2041, 1, 1, tzinfo=UTC)
# No clock has been turned there and back within so few days.
_PROBE = 4 * DAY


# ── Turns ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Turn:
    """A clock is put forward or back."""

    zone: ZoneInfo
    instant: datetime
    before: timedelta
    after: timedelta

    def __str__(self):
        return f"{self.zone} at {self.instant}, from {self.before} to {self.after}"

    @property
    def step(self):
        """By how much, to either side."""
        return abs(self.after - self.before)

    @property
    def kind(self):
        """What makes it different from others, apart from where and when."""
        old, new = self.instant + self.before, self.instant + self.after
        return self.before, self.after, old.time(), old.date() == new.date()


@cache
def turns_of_zones():
    """The turns of each zone, but only once of those that have the same."""
    distinct = {}
    for name in sorted(available_timezones()):
        turns = turns_of(ZoneInfo(name))
        distinct.setdefault(
            tuple((each.instant, each.before, each.after) for each in turns), turns
        )
    return [each for each in distinct.values() if each]


def turns_of(zone):
    found, start = [], SINCE
    before = _offset(start, zone)
    while start < UNTIL:
        end = start + _PROBE
        after = _offset(end, zone)
        if after != before:
            found.append(Turn(zone, _turn(start, end, zone), before, after))
        start, before = end, after
    return found


def _turn(early, late, zone):
    while late - early > SECOND:
        middle = early + (late - early) // SECOND // 2 * SECOND
        if _offset(middle, zone) == _offset(early, zone):
            early = middle
        else:
            late = middle
    return late


def _offset(instant, zone):
    return instant.astimezone(zone).utcoffset()


# ── The oracle ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Walk:
    """Instants one after the other, what the clock shows at each, and leaves out.

    It has to begin before anything that may be shown twice.
    """

    zone: ZoneInfo
    start: datetime
    end: datetime
    step: timedelta = MINUTE

    @classmethod
    def around(cls, turn, *, by=26 * HOUR, step=MINUTE):
        return cls(turn.zone, turn.instant - by, turn.instant + by, step)

    @cached_property
    def steps(self):
        """Pairs of an instant, and the times that the clock has come to with it."""
        return list(self._steps())

    @property
    def walls(self):
        """All times that the clock shows or leaves out."""
        return [wall for _, walls in self.steps for wall in walls]

    def _steps(self):
        shown, instant = self._wall(self.start - self.step), self.start
        while instant <= self.end:
            wall = self._wall(instant)
            yield instant, [*self._left_out(shown, wall), wall]
            shown, instant = wall, instant + self.step

    def _wall(self, instant):
        return instant.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def _left_out(self, shown, wall):
        while (shown := shown + self.step) < wall:
            yield shown


def expected(pattern, walk):
    """The instants of the pattern on the walk."""
    if pattern.has_every_hour:
        return [instant for instant, walls in walk.steps if pattern.has(walls[-1])]
    found, done = [], set()
    for instant, walls in walk.steps:
        due = {wall for wall in walls if pattern.has(wall)} - done
        if due:
            found.append(instant)
        done |= due
    return found


def compare(schedule, pattern, walk, random):
    """Everything that a schedule can be asked agrees with the oracle.

    Returns how many instants there were.
    """
    try:
        return _compare(schedule, pattern, walk, random)
    except AssertionError as error:
        error.add_note(f"{pattern} on {walk}")
        raise


def _compare(schedule, pattern, walk, random):
    instants = expected(pattern, walk)
    after, until, zone = walk.start - SECOND, walk.end, walk.zone
    assert _onward(schedule, after, until, zone) == instants
    asked = {"after": after, "until": until, "zone": zone}
    assert schedule.latest(len(instants) + 1, **asked) == instants
    assert schedule.count(**asked) == len(instants)
    _compare_from_between(schedule, instants, walk, random)
    return len(instants)


def _onward(schedule, after, until, zone):
    found, instant = [], schedule.next_after(after, zone)
    while instant <= until:
        found.append(instant)
        instant = schedule.next_after(instant, zone)
    return found


def _compare_from_between(schedule, instants, walk, random):
    for _ in range(3):
        moment = walk.start + random.random() * (walk.end - walk.start)
        later = [each for each in instants if each > moment]
        if later:
            assert schedule.next_after(moment, walk.zone) == later[0]
        until = {"after": walk.start - SECOND, "until": moment, "zone": walk.zone}
        earlier = [each for each in instants if each <= moment]
        assert schedule.latest(2, **until) == earlier[-2:]
        assert schedule.count(**until) == len(earlier)
