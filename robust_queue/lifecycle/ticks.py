"""A cursor that is due ──▶ which instants run, which are left out, and what comes next.

Nothing is written here. Instants are those of the schedule, computed from the cursor;
the clock only tells which of them are over.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

from django.conf import settings
from django.utils import timezone

from robust_queue.models import RecurringTask
from robust_queue.models.recurring import OnMissed
from robust_queue.recurrence import MOST_MISSED
from robust_queue.schedules import Schedule, zone_named

LEAST = timedelta(microseconds=1)
# More than these are not counted: it would take longer than anybody wants to wait.
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Skipped:
    """Instants in a row, from the first to the last. None: too many to be counted."""

    first: datetime
    last: datetime
    number: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of the instants from the cursor until now."""

    runs: list[datetime]
    skipped: list[Skipped] = field(default_factory=list)
    next_run_at: datetime | None


def decide(row: RecurringTask, *, now: datetime, grace: timedelta) -> Verdict:
    """Judge a recurring task that is due; nonsense in its row raises ValueError."""
    cursor = row.next_run_at
    if cursor is None:
        raise ValueError(f"Recurring task {row.key!r} has no cursor.")
    timeline = Timeline.of(row)
    following = timeline.after(cursor)
    if following > now and (now - cursor <= grace or row.on_missed != OnMissed.SKIP):
        # As nearly always: one instant, whose time has just come.
        return Verdict(runs=[cursor], next_run_at=following)
    return _decide_on_many(row, timeline, cursor - LEAST, now=now, grace=grace)


def _decide_on_many(
    row: RecurringTask,
    timeline: "Timeline",
    before: datetime,
    *,
    now: datetime,
    grace: timedelta,
) -> Verdict:
    limit = min(row.missed_limit, MOST_MISSED)
    most = limit if row.on_missed == OnMissed.RUN_ALL else 1
    latest = timeline.latest(most + 1, after=before, until=now)
    runs = latest[-most:]
    if row.on_missed == OnMissed.SKIP and runs and now - runs[-1] > grace:
        runs = []
    left_out = latest[: len(latest) - len(runs)]
    skipped = [timeline.skipped(before, left_out[-1], "missed")] if left_out else []
    following = timeline.after(max(now, before))
    return Verdict(runs=runs, skipped=skipped, next_run_at=following)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The instants of a schedule, all of them as the project stores moments."""

    schedule: Schedule
    zone: tzinfo

    @classmethod
    def of(cls, row: RecurringTask) -> "Timeline":
        return timeline_of(row.schedule, row.timezone)

    def after(self, moment: datetime) -> datetime:
        """The first instant behind the moment."""
        instant = _instant(moment)
        while True:
            instant = self.schedule.next_after(instant, self.zone)
            # Without zones an hour that the clock shows twice would look like the past.
            if (found := _stored(instant)) > moment:
                return found

    def upcoming(self, moment: datetime, number: int) -> list[datetime]:
        """The next instants behind the moment, as many as that."""
        found = [moment]
        for _ in range(number):
            found.append(self.after(found[-1]))
        return found[1:]

    def latest(
        self, number: int, *, after: datetime, until: datetime
    ) -> list[datetime]:
        """The last instants between two moments, the second included."""
        begin, end = _instant(after), _instant(until)
        found = self.schedule.latest(number, after=begin, until=end, zone=self.zone)
        # Without zones two of them may be the same moment, in an hour that is repeated.
        return list(dict.fromkeys(_stored(each) for each in found))

    def skipped(self, after: datetime, last: datetime, reason: str) -> Skipped:
        """The instants behind a moment and up to the last one, which is left out."""
        begin, end = _instant(after), _instant(last)
        number = self.schedule.count(
            after=begin, until=end, zone=self.zone, most=MOST_COUNTED
        )
        return Skipped(self.after(after), last, number, reason)


def timeline_of(schedule: str | Schedule, zone: str | None) -> Timeline:
    """The instants of a schedule by the clocks of that zone, else of the project's."""
    # By the name as well: without a zone of its own it follows TIME_ZONE.
    return _timeline(str(schedule), zone or settings.TIME_ZONE or "UTC")


@lru_cache(maxsize=4096)
def _timeline(text: str, zone: str) -> Timeline:
    return Timeline(Schedule(text), zone_named(zone))


def _instant(moment: datetime) -> datetime:
    if settings.USE_TZ:
        return moment
    return timezone.make_aware(moment, timezone.get_default_timezone())


def _stored(instant: datetime) -> datetime:
    if settings.USE_TZ:
        return instant
    return timezone.make_naive(instant, timezone.get_default_timezone())
