"""People who change timetables while schedulers run, and what they have changed."""

from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

from django.db import transaction

import robust_queue
from robust_queue.lifecycle import timetable
from robust_queue.models import RecurringTask
from robust_queue.stores.conflicts import retried
from tests.support.timetables import GONE, OTHERS, ZONES
from tests.testapp.timetabled_tasks import tick


class Editor:
    """Changes lines of a timetable at random, by the clock of its host."""

    def __init__(self, ledger, clock, random):
        self._ledger = ledger
        self._clock = clock
        self._random = random
        self._edited = []
        self._version = 0
        self.done = Counter()

    @contextmanager
    def at_work(self, lines):
        """Make what is made at run time; until the end of the block, change some."""
        usual, timetable.timezone = timetable.timezone, SimpleNamespace(now=self._now)
        try:
            for line in lines:
                if not line.static:
                    self._make(line)
            yield
        finally:
            timetable.timezone = usual

    def edit(self):
        """Do something to one of those that may be changed."""
        if not self._edited:
            return
        line = self._random.choice(self._edited)
        row = RecurringTask.objects.filter(key=line.key).first()
        if row is None:
            verbs = [self._schedule]
        elif row.enabled:
            verbs = [self._pause, self._run_now, self._change, self._retime]
            verbs += [self._unschedule]
        else:
            verbs = [self._resume, self._resume, self._run_now, self._retime]
        verb = self._random.choice(verbs)
        verb(line)
        self.done[verb.__name__.strip("_")] += 1

    def _now(self):
        return self._moment

    def _make(self, line):
        self._schedule(line)
        if line.edited:
            self._edited.append(line)
        if line.refused:
            RecurringTask.objects.filter(key=line.key).update(task_path=GONE)

    # ── Verbs ──────────────────────────────────────────────────────────────────

    def _schedule(self, line):
        self._moment = self._clock.now()
        with transaction.atomic():
            self._ledger.begin(self._put(line))

    def _run_now(self, line):
        self._moment = self._clock.now()
        robust_queue.run_recurring_now(line.key)

    def _pause(self, line):
        self._change_row(line, lambda: robust_queue.pause_recurring(line.key))

    def _resume(self, line):
        self._change_row(line, lambda: robust_queue.resume_recurring(line.key))

    def _unschedule(self, line):
        self._change_row(line, lambda: robust_queue.unschedule_recurring(line.key))

    def _change(self, line):
        """Other arguments: its instants stay as they are."""
        row = RecurringTask.objects.get(key=line.key)
        times = {"schedule": row.schedule, "timezone": row.timezone}
        self._change_row(line, lambda: self._put(line, replace=True, **times))

    def _retime(self, line):
        schedule, zone = self._random.choice(OTHERS), self._random.choice(ZONES)
        times = {"schedule": schedule, "timezone": zone}
        self._change_row(line, lambda: self._put(line, replace=True, **times))

    def _put(self, line, *, replace=False, **changes):
        self._version += 1
        args = (line.key, self._version) if line.task is tick else (line.key,)
        options = {**line.options, **changes}
        return robust_queue.schedule_recurring(
            line.key, line.task, args=args, replace=replace, **options
        )

    def _change_row(self, line, change):
        def locked():
            with transaction.atomic():
                rows = RecurringTask.objects.select_for_update()
                before = rows.get(key=line.key)
                # Not earlier: who waits for a lock is late.
                self._moment = self._clock.now()
                change()
                after = RecurringTask.objects.filter(key=line.key).first()
                self._ledger.note(before, after, moment=self._moment)

        retried("default", locked)
