"""What ought to have become of every instant, told by the schedules alone.

A cursor is believed in two places only: where a schedule came into force under a key,
and where it went out of force. All instants between them must have been told, each one
once: as a run with one job, or among those that were left out.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

from robust_queue.models import Job, RecurringExecution, RecurringTask
from robust_queue.models.recurring import Outcome
from robust_queue.schedules import Schedule, zone_named

WITH_JOB = {Outcome.ENQUEUED, Outcome.SUCCEEDED, Outcome.FAILED}
WITHOUT_JOB = {Outcome.SKIPPED, Outcome.REFUSED, Outcome.HANDED_OVER}
_LEAST = timedelta(microseconds=1)


@dataclass(kw_only=True)
class Segment:
    """A schedule that was in force under a key, and what was told meanwhile."""

    schedule: str
    zone: str
    begin: datetime
    # Entries are numbered: these are its own, the first one excluded.
    after_entry: int
    end: datetime | None = None
    last_entry: int | None = None

    def instants(self, begin, end):
        """Those from a moment to another, which is excluded."""
        schedule, zone = Schedule(self.schedule), zone_named(self.zone)
        found, instant = [], schedule.next_after(begin - _LEAST, zone)
        while instant < end:
            found.append(instant)
            instant = schedule.next_after(instant, zone)
        return found

    def first_after(self, moment):
        return Schedule(self.schedule).next_after(moment, zone_named(self.zone))

    def owns(self, entry):
        return self.after_entry < entry.pk <= self.last_entry


class Ledger:
    """Which schedules were in force, from when to when."""

    def __init__(self):
        self._segments = defaultdict(list)

    def begin(self, row):
        """A schedule is in force from now on; whoever says so has locked the row."""
        segment = Segment(
            schedule=row.schedule,
            zone=row.timezone,
            begin=row.next_run_at,
            after_entry=_latest_entry(row.key),
        )
        self._segments[row.key].append(segment)

    def note(self, before, after, *, moment):
        """Somebody has changed a locked row at a moment, or deleted it."""
        if after is None:
            self._end(before)
        elif (before.schedule, before.timezone) != (after.schedule, after.timezone):
            # What was due, because it was late or paused, has been left out by that.
            self._end(before, passed_over_until=moment)
            self.begin(after)
        elif after.next_run_at < before.next_run_at:
            # By a clock that is behind that of a scheduler.
            self._end(before)
            self.begin(after)

    def close(self):
        """Nobody goes on: what is in force ends where the cursors are."""
        for row in RecurringTask.objects.all():
            self._end(row)

    def _end(self, row, *, passed_over_until=None):
        segment = self._segments[row.key][-1]
        segment.end = row.next_run_at
        if passed_over_until is not None and row.next_run_at <= passed_over_until:
            segment.end = segment.first_after(passed_over_until)
        segment.last_entry = _latest_entry(row.key)

    def judge(self):
        """Return the figures, if all is as it ought to be."""
        figures, trouble = Counter(), []
        entries = defaultdict(list)
        for entry in RecurringExecution.objects.order_by("pk").iterator():
            entries[entry.task_key].append(entry)
        assert entries.keys() <= self._segments.keys()
        for key, segments in self._segments.items():
            trouble += _judge_key(segments, entries[key], figures)
        assert not trouble, "\n".join([f"{len(trouble)} in all", *trouble[:10]])
        _judge_jobs(entries)
        return figures


def _latest_entry(key):
    entries = RecurringExecution.objects.filter(task_key=key, by_hand=False)
    return entries.order_by("-pk").values_list("pk", flat=True).first() or 0


# ── Instants ───────────────────────────────────────────────────────────────────


def _judge_key(segments, entries, figures):
    before, owned = set(), 0
    by_schedule = [each for each in entries if not each.by_hand]
    figures["by hand"] += len(entries) - len(by_schedule)
    for segment in segments:
        own = [each for each in by_schedule if segment.owns(each)]
        owned += len(own)
        for trouble in _judge_segment(segment, own, before, figures):
            yield f"{segment}: {trouble}"
        before.update(chain.from_iterable(_covered(segment, each) for each in own))
    if owned != len(by_schedule):
        yield f"{segments}: {len(by_schedule) - owned} entries beside them"


def _judge_segment(segment, entries, told_before, figures):
    told = Counter()
    for entry in entries:
        covered = _covered(segment, entry)
        told.update(covered)
        figures[_kind(entry)] += len(covered)
        if entry.skipped_until and len(covered) != entry.skipped:
            yield f"{vars(entry)} counts wrong, there are {len(covered)}"
    expected = set(segment.instants(segment.begin, segment.end))
    figures["instants"] += len(expected)
    for what, instants in {
        "twice": {each for each, times in told.items() if times > 1},
        # What was told before a cursor was set back stays told.
        "never": expected - told.keys() - told_before,
        "nobody asked for": told.keys() - expected,
    }.items():
        if instants:
            nearby = _near(min(instants), entries)
            yield f"{what}: {len(instants)}, {min(instants)} first; {nearby}"


def _near(instant, entries):
    return [
        (each.pk, str(each.run_at), str(each.skipped_until), each.outcome, each.reason)
        for each in entries
        if abs(each.run_at - instant) < timedelta(minutes=5)
    ]


def _covered(segment, entry):
    """The instants that an entry tells of."""
    if entry.skipped_until is None:
        return [entry.run_at]
    found = segment.instants(entry.run_at, entry.skipped_until + _LEAST)
    ends = {entry.run_at, entry.skipped_until}
    return [*found, *(ends - set(found))]


def _kind(entry):
    if entry.job_id:
        return "runs"
    if entry.outcome != Outcome.SKIPPED:
        return str(entry.outcome)
    return entry.reason.split(":")[0] if entry.skipped_until else "overlap or unique"


# ── Jobs ───────────────────────────────────────────────────────────────────────


def _judge_jobs(entries):
    """Each run has its job, and each job its run, of the same key."""
    expected = {}
    for key, own in entries.items():
        for entry in own:
            assert entry.outcome in (WITH_JOB if entry.job_id else WITHOUT_JOB), entry
            if entry.job_id:
                assert entry.job_id not in expected, entry
                expected[entry.job_id] = key
    jobs = Job.objects.values_list("pk", "arguments").iterator()
    made = {pk: json.loads(arguments)["args"][0] for pk, arguments in jobs}
    assert made == expected
