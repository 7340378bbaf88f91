"""Processes are killed, stopped and woken at random while jobs run; then all is judged.

What is believed afterwards: the tables, and what each run of a task told by itself in a
file. A run that is followed by another one must have been cut off by a signal of ours.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from signal import SIGCONT, SIGKILL, SIGSTOP

from robust_queue import enqueue_all
from robust_queue.models import FailedExecution, FinishedExecution, Process
from robust_queue.processes.exits import ExitCode
from tests.support.invariants import states
from tests.support.supervisors import is_alive, until
from tests.testapp.witnessed_tasks import again

SUPERVISORS = 2
OPTIONS = {
    "workers": [{"threads": 3, "processes": 2, "polling_interval": 0.05}],
    "process_alive_threshold": 5,
    "shutdown_timeout": 20,
}
LONGEST_SLEEP = 8.0  # longer than the threshold: some wake too late
AT_ONCE = 1000
# From the call that sends a signal until the last thread on another CPU heeds it.
LANDS_WITHIN = 0.05
# From the end of a task until no blow can undo it.
UNRECORDED_FOR = 3.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything."""

    jobs: int
    seed: int
    limit: float  # seconds for all of them
    pause: float  # seconds between two blows, on average
    longest: float  # seconds per job
    # From the label of a job, and how long it is to take: what is to be called.
    call: Callable[[str, float], object] = again.bind
    # May workers be stopped, and woken later? One that sleeps is not dead.
    sleeps: bool = True


@dataclass(frozen=True)
class Blow:
    """A signal that was sent."""

    kind: str
    pid: int
    moment: float


class Chaos:
    """One run, from the first job to the verdict."""

    def __init__(self, start, witness, **plan):
        self._start = start
        self._witness = witness
        self._plan = Plan(**plan)
        self._random = random.Random(self._plan.seed)
        self._supervisors = []
        self._sessions = set()
        self._blows = []
        self._asleep = {}  # by number: when to wake it

    def run(self):
        """Enqueue, strike until everything is done, and judge."""
        print(f"\nchaos: {self._plan}", flush=True)  # noqa: T201
        ids = self._enqueue()
        begun = time.monotonic()
        for _ in range(SUPERVISORS):
            self._start_supervisor()
        self._strike(until=begun + self._plan.limit)
        seconds = time.monotonic() - begun
        self._stop()
        verdict = Verdict(self._witness.executions(), self._blows, ids)
        assert not self._witness.count("overlaps")
        assert set(self._witness.count("announced").values()) <= {1}
        print(f"chaos: {verdict} In {seconds:.0f} s.", flush=True)  # noqa: T201

    def _enqueue(self):
        names = [f"it-{n}" for n in range(self._plan.jobs)]
        results = []
        for first in range(0, len(names), AT_ONCE):
            results += enqueue_all(
                self._plan.call(name, self._random.uniform(0, self._plan.longest))
                for name in names[first : first + AT_ONCE]
            )
        return {name: r.id for name, r in zip(names, results, strict=True)}

    def _start_supervisor(self):
        supervisor = self._start(**OPTIONS)
        self._supervisors.append(supervisor)
        self._sessions.add(supervisor.pid)

    def _stop(self):
        self._wake(everybody=True)
        for each in self._supervisors:
            # One that is not yet there would not hear.
            row = Process.objects.filter(kind="Supervisor", pid=each.pid)
            each.until(row.exists, "it is up")
            assert each.stop(timeout=60) == ExitCode.DONE, each.log
        workers = {int(pid) for _, _, pid, _ in self._witness.events()}
        until(lambda: not any(map(is_alive, workers)), "all have left")

    # ── Blows ──────────────────────────────────────────────────────────────────

    def _strike(self, *, until):
        kinds = [self._kill_worker, self._stop_worker, self._kill_supervisor]
        weights = [16, 3 if self._plan.sleeps else 0, 1]
        # Each kind once, whatever chance has in mind.
        wanted = [kind for kind, weight in zip(kinds, weights, strict=True) if weight]
        first = self._random.sample(wanted, len(wanted))
        while not self._is_done():
            assert time.monotonic() < until, self._standing()
            self._nap(self._random.uniform(0, 2 * self._plan.pause))
            (strike,) = self._random.choices(kinds, weights)
            (first.pop() if first else strike)()

    def _is_done(self):
        assert not FailedExecution.objects.exists(), self._standing()
        return FinishedExecution.objects.count() == self._plan.jobs

    def _nap(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._is_done():
            self._wake()
            time.sleep(min(0.05, seconds))

    def _kill_worker(self):
        for pid in self._draw_worker():
            self._send(pid, SIGKILL)

    def _stop_worker(self):
        for pid in self._draw_worker():
            self._send(pid, SIGSTOP)
            sleep = self._random.uniform(0, LONGEST_SLEEP)
            self._asleep[pid] = time.monotonic() + sleep

    def _wake(self, *, everybody=False):
        for pid, moment in list(self._asleep.items()):
            if everybody or time.monotonic() > moment:
                del self._asleep[pid]
                self._send(pid, SIGCONT)

    def _kill_supervisor(self):
        victim = self._random.choice(self._supervisors)
        self._supervisors.remove(victim)
        self._blows.append(Blow("supervisor", victim.pid, time.monotonic()))
        victim.send(SIGKILL)
        victim.wait()
        self._start_supervisor()

    def _draw_worker(self):
        rows = Process.objects.filter(kind="Worker").order_by("pk")
        awake = [row.pid for row in rows if row.pid not in self._asleep]
        return [self._random.choice(awake)] if awake else []

    def _send(self, pid, number):
        # The row of a process may outlive it, and its number may be somebody else's.
        with suppress(ProcessLookupError):
            if os.getsid(pid) in self._sessions:
                if number is not SIGCONT:
                    self._blows.append(Blow(number.name, pid, time.monotonic()))
                os.kill(pid, number)

    def _standing(self):
        done = FinishedExecution.objects.count()
        logs = "\n".join(each.log[-5000:] for each in self._supervisors)
        return f"{self._plan}: {done} are done\n{logs}"


class Verdict:
    """None lost, none finished twice, none run twice unless it was interrupted."""

    def __init__(self, executions, blows, ids):
        self._executions = executions
        self._blows = blows
        assert Counter(states().values()) == {"finished": len(ids)}
        assert set(executions) == set(ids)
        self._most_attempts = self._judge_attempts(ids)
        self._repeated = [runs for runs in executions.values() if len(runs) > 1]
        self._ended_in_vain = 0
        for runs in self._repeated:
            for run, successor in pairwise(runs):
                self._judge_repetition(run, successor)

    def _judge_attempts(self, ids):
        rows = FinishedExecution.objects.values_list("pk", "attempts")
        attempts = {str(job_id): number for job_id, number in rows}
        for label, runs in self._executions.items():
            assert len(runs) <= attempts[ids[label]], label
        return max(attempts.values())

    def _judge_repetition(self, run, successor):
        """It was struck before the next began, at the latest when it had just ended."""
        received = [blow for blow in self._blows if blow.pid == run.pid]
        moments = [
            blow.moment
            for blow in received
            if run.begun - LANDS_WITHIN < blow.moment < successor.begun
        ]
        assert moments, f"Who interrupted {run} before {successor}? {received}"
        if run.ended is not None:
            self._ended_in_vain += 1
            assert min(moments) < run.ended + UNRECORDED_FOR, (run, moments)

    def __str__(self):
        kinds = Counter(blow.kind for blow in self._blows)
        return (
            f"{len(self._executions)} jobs, each finished once. "
            f"Workers killed: {kinds['SIGKILL']}, stopped: {kinds['SIGSTOP']}; "
            f"supervisors killed: {kinds['supervisor']}. "
            f"Jobs that ran more than once: {len(self._repeated)}, each interrupted, "
            f"{self._ended_in_vain} at their very end; attempts: {self._most_attempts} "
            "at most."
        )
