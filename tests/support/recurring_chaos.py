"""Schedulers are killed, stopped and misled about the time, and timetables changed.

Each host has a supervisor with a scheduler and a clock of its own, which is quicker
than time and steps back and forth. Afterwards every instant is looked for.
"""

import json
import os
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from threading import Timer

from robust_queue.models import Process, RecurringTask
from robust_queue.processes.exits import ExitCode
from tests.support.recurring_edits import Editor
from tests.support.recurring_ledger import Ledger
from tests.support.supervisors import until
from tests.support.timetables import GONE, in_settings
from tests.testapp.clockwork import VARIABLE, Clock
from tests.testapp.timetabled_tasks import SERVED

MODULES = ["tests.testapp.clockwork", "tests.testapp.timetabled_tasks"]
OPTIONS = {
    "task_modules": MODULES,
    "process_alive_threshold": 6,
    "recurring_grace": 30,
}
ATTENDANTS = {
    "workers": [{"queues": [SERVED], "threads": 12, "polling_interval": 0.1}],
    "task_modules": MODULES,
}
LONGEST_SKEW = 10.0  # seconds of the clocks, as all that follow


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything."""

    lines: list
    hosts: int
    seed: int
    begin: object
    seconds: float  # real ones, for all
    rate: float  # how many seconds of the clocks to a real one
    blows: dict  # by name, how likely each is
    pause: float  # real seconds between two of them, on average
    edits: int = 0  # between two blows
    longest_sleep: float = 4.0  # real seconds
    farthest_step: float = 120.0
    # Does anybody run the tasks of which runs might overlap?
    is_attended: bool = False

    def __str__(self):
        return (
            f"{len(self.lines)} schedules, {self.hosts} schedulers, seed {self.seed}, "
            f"{self.seconds:g} s at {self.rate:g} to 1"
        )


class Host:
    """A machine with a clock of its own and a supervisor, sooner or later the next."""

    def __init__(self, start, plan, *, clock, shared_clock):
        self._start = start
        self.clock = clock
        timetable = {each.key: in_settings(each) for each in plan.lines if each.static}
        self._options = {**OPTIONS, "recurring_tasks": timetable}
        clockwork = {
            "go_by": clock.path,
            "share": shared_clock.path,
            "hurry": plan.rate,
        }
        self._environment = {VARIABLE: json.dumps(clockwork)}
        self.sessions = []

    def boot(self):
        self.supervisor = self._start(
            *("--only", "scheduler"), environment=self._environment, **self._options
        )
        self.sessions.append(self.supervisor.pid)

    def until_up(self):
        up = lambda: self.supervisor.rows("Scheduler")  # noqa: E731
        self.supervisor.until(up, "its scheduler is up")

    def stop(self):
        # One that is not yet there would not hear.
        row = Process.objects.filter(kind="Supervisor", pid=self.supervisor.pid)
        self.supervisor.until(row.exists, "it is up")
        code = self.supervisor.stop(timeout=60)
        assert code == ExitCode.DONE, self.supervisor.log[-5000:]


class RecurringChaos:
    """One run, from the first schedule to the verdict."""

    def __init__(self, start, folder, **plan):
        self._plan = Plan(**plan)
        self._random = random.Random(self._plan.seed)
        self._start = start
        self._clock = Clock(folder / "clock")
        self._hosts = [
            Host(
                start,
                self._plan,
                clock=Clock(folder / f"clock-{n}"),
                shared_clock=self._clock,
            )
            for n in range(self._plan.hosts)
        ]
        self._ledger = Ledger()
        self._editor = Editor(self._ledger, self._hosts[0].clock, self._random)
        self._blows = Counter()
        self._timers = []

    def run(self):
        """Install, strike until the night is over, and judge."""
        print(f"\nrecurring chaos: {self._plan}", flush=True)  # noqa: T201
        for clock in self._clocks:
            clock.set(self._plan.begin, rate=0)
        attendants = None
        if self._plan.is_attended:
            attendants = self._start("--skip-recurring", **ATTENDANTS)
        for host in self._hosts:
            host.boot()
        with self._editor.at_work(self._plan.lines):
            self._begin()
            self._strike()
        seconds = time.monotonic() - self._begun
        self._come_to_rest()
        for host in self._hosts:
            host.stop()
        if attendants:
            attendants.stop()
        self._ledger.close()
        figures = self._ledger.judge()
        self._tell(figures, seconds)
        return figures

    def _begin(self):
        """Let the clocks go when everything is there, and nothing has been due yet."""
        for host in self._hosts:
            host.until_up()
        keys = {each.key for each in self._plan.lines}
        rows = RecurringTask.objects.filter(key__in=keys)
        until(lambda: rows.count() == len(keys), "all are installed")
        for row in rows.filter(static=True):
            self._ledger.begin(row)
        for clock in self._clocks:
            skew = timedelta(seconds=self._random.uniform(0, LONGEST_SKEW))
            clock.set(self._plan.begin + skew, rate=self._plan.rate)
        self._begun = time.monotonic()

    @property
    def _clocks(self):
        return [self._clock, *(host.clock for host in self._hosts)]

    def _come_to_rest(self):
        """Let everybody do what is due, by clocks that agree and stand still."""
        self._wake_all()
        moment = self._clock.now()
        for clock in self._clocks:
            clock.set(moment, rate=0)
        due = RecurringTask.objects.filter(enabled=True, next_run_at__lte=moment)
        # Others might know a task that is gone: it is left to them for a while.
        due = due.exclude(task_path=GONE)
        try:
            until(lambda: not due.exists(), "nothing is due", timeout=60)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._standing(due)}") from None

    def _standing(self, due):
        keys = ", ".join(f"{row.key} at {row.next_run_at}" for row in due)
        logs = "\n--- log ---\n".join(
            host.supervisor.log[-5000:] for host in self._hosts
        )
        return f"{self._plan}: {keys} at {self._clock.now()}\n{logs}"

    def _tell(self, figures, seconds):
        told = ", ".join(f"{name} {n:,}" for name, n in sorted(figures.items()))
        blows = ", ".join(f"{name} {n}" for name, n in sorted(self._blows.items()))
        edits = ", ".join(f"{name} {n}" for name, n in self._editor.done.items())
        print(  # noqa: T201
            f"recurring chaos: {told}. Blows: {blows}. Edits: {edits or 'none'}. "
            f"In {seconds:.0f} s.",
            flush=True,
        )

    # ── Blows ──────────────────────────────────────────────────────────────────

    def _strike(self):
        names, weights = zip(*self._plan.blows.items(), strict=True)
        # Each once, whatever chance has in mind.
        first = self._random.sample(names, len(names))
        end = self._begun + self._plan.seconds
        while first or time.monotonic() < end:
            (name,) = self._random.choices(names, weights)
            name = first.pop() if first else name
            getattr(self, f"_{name}")()
            self._blows[name] += 1
            for _ in range(self._plan.edits):
                self._editor.edit()
            pause = self._random.uniform(0, 2 * self._plan.pause)
            time.sleep(max(0.0, min(pause, end - time.monotonic())))

    def _kill_scheduler(self):
        self._send(self._draw_scheduler(), SIGKILL)

    def _terminate_scheduler(self):
        self._send(self._draw_scheduler(), SIGTERM)

    def _stop_scheduler(self):
        pid = self._draw_scheduler()
        self._send(pid, SIGSTOP)
        self._later(lambda: self._send(pid, SIGCONT))

    def _kill_supervisor(self):
        host = self._random.choice(self._hosts)
        host.supervisor.send(SIGKILL)
        self._replace(host)

    def _kill_host(self):
        host = self._random.choice(self._hosts)
        _send_to_all(host.supervisor.pid, SIGKILL)
        self._replace(host)

    def _stop_host(self):
        pid = self._random.choice(self._hosts).supervisor.pid
        _send_to_all(pid, SIGSTOP)
        self._later(lambda: _send_to_all(pid, SIGCONT))

    def _kill_all_hosts(self):
        for host in self._hosts:
            _send_to_all(host.supervisor.pid, SIGKILL)
        for host in self._hosts:
            self._replace(host)

    def _step_forward(self):
        self._step(1)

    def _step_back(self):
        self._step(-1)

    def _step(self, way):
        """By some seconds from the right time: it never goes wrong for good."""
        clock = self._random.choice(self._hosts).clock
        seconds = way * self._random.uniform(1, self._plan.farthest_step)
        moment = self._clock.now() + timedelta(seconds=seconds)
        clock.set(moment, rate=self._plan.rate)

    def _replace(self, host):
        host.supervisor.wait()
        host.boot()

    def _draw_scheduler(self):
        rows = Process.objects.filter(kind="Scheduler").order_by("pk")
        pids = rows.values_list("pid", flat=True)
        return self._random.choice(pids) if pids else None

    def _later(self, act):
        timer = Timer(self._random.uniform(0.2, self._plan.longest_sleep), act)
        timer.start()
        self._timers.append((timer, act))

    def _wake_all(self):
        for timer, act in self._timers:
            timer.cancel()
            act()

    def _send(self, pid, number):
        # The row of a process may outlive it, and its number may be somebody else's.
        sessions = {pid for host in self._hosts for pid in host.sessions}
        with suppress(ProcessLookupError):
            if pid is not None and os.getsid(pid) in sessions:
                os.kill(pid, number)


def _send_to_all(supervisor_pid, number):
    """Hit a supervisor and its scheduler at once, or who is left of them."""
    with suppress(ProcessLookupError):
        os.killpg(supervisor_pid, number)
