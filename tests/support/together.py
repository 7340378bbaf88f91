"""Workers outside and our own do the same jobs, while some outside are killed.

What is believed afterwards: the tables, and what each run of a task told by itself in a
file, in Python and in Node by the same clock of the machine.
"""

import random
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise

from robust_queue import enqueue_all
from robust_queue.doctor import examine
from robust_queue.models import Attempt, FailedExecution, FinishedExecution, Process
from tests.support.chaos import AT_ONCE, LANDS_WITHIN, UNRECORDED_FOR
from tests.support.invariants import states
from tests.support.outside import OPTIONS, ApiServer, Outside, new_token
from tests.support.supervisors import Supervised

QUEUES = "outside,anybody"
QUICK = {**OPTIONS, "process_alive_threshold": 6}
NATIVE = {
    **QUICK,
    "workers": [{"threads": 3, "polling_interval": 0.05}],
    "shutdown_timeout": 20,
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything."""

    jobs: int
    seed: int
    outside: tuple[str, ...]  # kinds of workers, of each as many as are named
    natives: int
    keys: int  # of those jobs of which only some may run at a time
    kills: int | None  # None: until all is done
    pause: float  # seconds between two of them
    longest: float  # seconds per job
    limit: float  # seconds for all


class Together:
    """One run, from the first job to the verdict."""

    def __init__(self, folder, witness, tasks, **plan):
        self._folder, self._witness, self._tasks = folder, witness, tasks
        self._plan = Plan(**plan)
        self._random = random.Random(self._plan.seed)
        self._deaths = {}  # by number: when it was killed
        self._token = new_token("work:*")

    def run(self):
        """Enqueue, kill until everything is done, and judge."""
        print(f"\ntogether: {self._plan}", flush=True)  # noqa: T201
        ids = self._enqueue()
        with ExitStack() as stack:
            self._start(stack)
            begun = time.monotonic()
            self._kill(until=begun + self._plan.limit, stack=stack)
            seconds = time.monotonic() - begun
            self._stop()
        runs = self._witness.executions()
        how = {"keys": self._plan.keys, "limit": self._tasks.LIMIT}
        verdict = Verdict(runs, self._deaths, ids, **how)
        print(f"together: {verdict} In {seconds:.0f} s.", flush=True)  # noqa: T201
        return verdict

    def _enqueue(self):
        kinds = [self._noted, self._noted_by_anybody, self._limited, self._for_anybody]
        calls = {
            f"it-{n}": kinds[n % 4](f"it-{n}", n // 4) for n in range(self._plan.jobs)
        }
        names, results = list(calls), []
        for first in range(0, len(names), AT_ONCE):
            some = [calls[name] for name in names[first : first + AT_ONCE]]
            results += enqueue_all(some)
        return {name: it.id for name, it in zip(names, results, strict=True)}

    def _noted(self, label, n):
        return self._tasks.noted.bind(label, self._seconds())

    def _noted_by_anybody(self, label, n):
        return self._tasks.noted_by_anybody.bind(label, self._seconds())

    # Of one key there are jobs for workers outside only, and jobs for anybody.

    def _limited(self, label, n):
        return self._tasks.limited.bind(label, self._seconds(), self._key(n))

    def _for_anybody(self, label, n):
        task = self._tasks.limited_for_anybody
        return task.bind(label, self._seconds(), self._key(n))

    def _key(self, n):
        return f"key-{n % self._plan.keys}"

    def _seconds(self):
        return round(self._random.uniform(0, self._plan.longest), 4)

    def _start(self, stack):
        self._server = self._begun(stack, ApiServer(self._folder, **QUICK))
        environment = self._witness.environment
        self._natives = [
            self._begun(
                stack, Supervised(self._folder, environment=environment, **NATIVE)
            )
            for _ in range(self._plan.natives)
        ]
        self._outside = [self._begun_outside(stack, it) for it in self._plan.outside]

    def _begun_outside(self, stack, kind):
        worker = Outside(
            *(self._folder, kind, self._server.url, self._token),
            queues=QUEUES,
            environment=self._witness.environment,
        )
        return self._begun(stack, worker)

    def _begun(self, stack, program):
        stack.callback(program.clean_up)
        return program.start()

    def _kill(self, *, until, stack):
        left = self._plan.kills
        while not self._is_done_by(time.monotonic() + self._plan.pause):
            assert time.monotonic() < until, self._standing()
            if left == 0:
                continue
            victim = self._victim()
            if victim is not None:
                left = None if left is None else left - 1
                self._outside.remove(victim)
                self._deaths[victim.pid] = time.monotonic()
                victim.kill()
                self._outside.append(self._begun_outside(stack, victim.kind))

    def _victim(self):
        """One that has begun to work, so that there is something to be lost."""
        busy = {int(pid) for _, _, pid, _ in self._witness.events()}
        found = [each for each in self._outside if each.pid in busy]
        return self._random.choice(found) if found else None

    def _is_done_by(self, moment):
        while time.monotonic() < moment:
            assert not FailedExecution.objects.exists(), self._standing()
            if FinishedExecution.objects.count() == self._plan.jobs:
                return True
            time.sleep(0.05)
        return False

    def _stop(self):
        for each in self._outside:
            assert each.stop() == 0, each.log
        # Those that were killed have to be missed first.
        gone = Process.objects.filter(kind="External")
        self._natives[0].until(lambda: not gone.exists(), "all have left")
        for each in self._natives:
            assert each.stop() == 0, each.log

    def _standing(self):
        programs = [self._server, *self._natives, *self._outside]
        logs = "\n".join(each.log[-3000:] for each in programs)
        return f"{Counter(states().values())}\n{logs}"


class Verdict:
    """None lost, none settled twice, none run twice unless it was interrupted."""

    def __init__(self, executions, deaths, ids, *, keys, limit):
        self.executions, self.deaths, self._ids = executions, deaths, ids
        self._keys = keys
        assert Counter(states().values()) == {"finished": len(ids)}
        assert set(executions) == set(ids)
        self._judge_attempts()
        self.repeated = [runs for runs in executions.values() if len(runs) > 1]
        for runs in self.repeated:
            for run, successor in pairwise(runs):
                self._judge_repetition(run, successor)
        self.at_once = {key: _most_at_once(it) for key, it in self._by_key().items()}
        assert set(self.at_once.values()) <= set(range(1, limit + 1)), self.at_once
        broken = [it for it in examine("default", deep=True) if it.rows]
        assert not broken, "\n".join(map(str, broken))

    def _judge_attempts(self):
        rows = FinishedExecution.objects.values_list("pk", "attempts", "worker_id")
        earlier = defaultdict(list)
        for job_id, number in Attempt.objects.values_list("job_id", "attempts"):
            earlier[job_id].append(number)
        numbers, self.by = {}, Counter()
        for job_id, attempts, worker in rows:
            # Each that was interrupted is written down once, and so is the last.
            assert sorted(earlier[job_id]) == list(range(1, attempts)), job_id
            numbers[str(job_id)] = attempts
            self.by[_kind_of(worker)] += 1
        for label, runs in self.executions.items():
            assert len(runs) <= numbers[self._ids[label]], label
        self.most_attempts = max(numbers.values())

    def _judge_repetition(self, run, successor):
        """Its worker was killed before the next began, at most a moment too late."""
        death = self.deaths.get(run.pid)
        assert death is not None, f"Who interrupted {run} before {successor}?"
        assert run.begun - LANDS_WITHIN < death < successor.begun, (run, successor)
        assert run.ended is None or death < run.ended + UNRECORDED_FOR, (run, death)

    def _by_key(self):
        """From when to when jobs of each key ran."""
        found = defaultdict(list)
        for label, runs in self.executions.items():
            n, kind = divmod(int(label.removeprefix("it-")), 4)
            for run in runs if kind >= KINDS_WITHOUT_LIMIT else []:
                ended = self.deaths[run.pid] if run.ended is None else run.ended
                found[n % self._keys].append((run.begun, ended))
        return found

    def __str__(self):
        return (
            f"{len(self.executions)} jobs, each finished once: {dict(self.by)}. "
            f"Workers outside killed: {len(self.deaths)}. "
            f"Jobs that ran more than once: {len(self.repeated)}, each interrupted; "
            f"attempts: {self.most_attempts} at most. "
            f"At once, by key: {self.at_once}."
        )


KINDS_WITHOUT_LIMIT = 2


def _kind_of(worker_id):
    kind = worker_id.partition("-")[0]
    return kind if kind in ("python", "node") else "native"


def _most_at_once(intervals):
    """Of how many the times overlap, at most."""
    # Who ends in the very moment in which another begins is gone.
    steps = sorted(
        [(begun, 1) for begun, _ in intervals] + [(end, -1) for _, end in intervals]
    )
    running = most = 0
    for _, step in steps:
        running += step
        most = max(most, running)
    return most
