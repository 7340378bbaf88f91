"""The lane of isolated tasks: each runs in a process of its own."""

import logging
import math
from datetime import datetime

from django.utils import timezone

from robust_queue import policies
from robust_queue.configuration import WorkerConfiguration
from robust_queue.context import Running
from robust_queue.lifecycle import elsewhere
from robust_queue.lifecycle.perform import Performed
from robust_queue.lifecycle.policy import policy_for
from robust_queue.processes import ProcessExitError, clock
from robust_queue.processes.exits import ExitCode, in_words
from robust_queue.processes.held import Ended, Held, first_of
from robust_queue.processes.lanes import Duty, Lane
from robust_queue.processes.pool import Errand, Pool
from robust_queue.stores.rows import Claim, Finished

from .diary import Diary, Entry
from .keeper import Keeper
from .nursery import Nursery
from .rooms import Room, Run
from .solitary import Terms

logger = logging.getLogger("robust_queue")

# Whoever listens for the end of a job may take long, and its place is free only then.
ANNOUNCERS = 3
EXIT_LENGTH = 255


class Isolated(Lane):
    """Runs each job in a process, and sees to its end whatever it does."""

    def __init__(self, configuration: WorkerConfiguration, duty: Duty) -> None:
        super().__init__(configuration.most_isolated, duty)
        self._configuration = configuration
        self._nursery: Nursery | None = None
        self._keeper: Keeper | None = None
        self._helpers: Pool | None = None
        self._diary = Diary(duty.database)
        self._reserved: dict[Held, datetime] = {}
        self._entries: dict[Run, Entry] = {}
        self._running = 0  # changed by the keeper alone

    def prepare(self) -> None:
        """Have the nursery forked: before any thread is started."""
        self._nursery = Nursery(
            Terms(
                database=self._duty.database,
                worker_name=self._duty.worker_name,
                memory_limit=self._configuration.memory_limit,
                cpu_limit=self._configuration.cpu_limit,
            )
        )

    def start(self) -> None:
        if self._nursery is None:
            raise RuntimeError("The nursery has to be forked before threads start.")
        self._keeper = Keeper(
            self._nursery,
            next_run=self._next_run,
            on_begin=self._note_beginning,
            on_end=self._note_end,
            on_failure=self._note_failure,
            on_loss=self._note_loss,
        )
        self._keeper.start()

    def is_for(self, claim: Claim) -> bool:
        """Is this job to be run in a process of its own?"""
        said = policy_for(claim).isolation or self._configuration.isolation
        return said == "process"

    # ── For the main thread ────────────────────────────────────────────────────

    def reserve(self, claim: Claim, *, counts: bool = True) -> Held:
        held = super().reserve(claim, counts=counts)
        self._reserved[held] = timezone.now()
        return held

    def let_go(self, held: Held) -> None:
        self._reserved.pop(held, None)
        super().let_go(held)

    def run(self, held: Held) -> None:
        self._waiting.append(held)
        if self._keeper:
            self._keeper.call()

    def _cancel_running(self, held: Held, running: Running) -> None:
        """End it: it is told, then asked, then killed."""
        super()._cancel_running(held, running)
        if self._keeper:
            self._keeper.cancel(held)

    def write_down(self) -> None:
        """Keep the account of where tasks run. To be called before ends are settled."""
        self._diary.write()

    @property
    def patience(self) -> float:
        return min(self._stale_in, self._diary.patience)

    def submit(self, errand: Errand) -> None:
        if self._helpers is None:
            self._helpers = Pool(ANNOUNCERS, "robust_queue announcer of isolated tasks")
            self._helpers.start()
        self._helpers.submit(errand)

    def give_up(self, *, within: float) -> None:
        """End everything that runs, before the worker leaves: it may run elsewhere."""
        if self._keeper:
            self._keeper.give_up(within=within)

    def finish(self, timeout: float) -> None:
        for helpers in (self._helpers, self._keeper):
            if helpers is not None:
                helpers.finish(timeout)
        if self._nursery:
            self._nursery.close(timeout)

    # ── In the thread of the keeper ────────────────────────────────────────────

    def _next_run(self) -> Run | None:
        """The next job that can be begun, if there is room for it."""
        while self._running < self._size:
            held = first_of(self._waiting)
            if held is None:
                return None
            if self._duty.may_begin():
                return self._started(held)
            self._end(held, None)
        return None

    def _started(self, held: Held) -> Run:
        claim, policy = held.claim, policy_for(held.claim)
        runs_again = policies.may_run_again(policy, attempts=claim.attempts)
        # Its end is seen to by the keeper: nobody has to end this process for it.
        self._duty.page.start(held.slot, runs_again=runs_again, ends=math.inf)
        held.running = Running(claim)
        self._running += 1
        timeout = policy.timeout
        return Run(
            held=held,
            policy=policy,
            started_at=timezone.now(),
            ends=clock.now() + timeout.total_seconds() if timeout else math.inf,
        )

    def _note_beginning(self, run: Run, room: Room) -> None:
        entry = self._entries[run] = Entry(
            job_id=run.held.claim.job_id,
            attempts=run.held.claim.attempts,
            reserved_at=self._reserved.get(run.held, run.started_at),
            started_at=run.started_at,
            pid=lambda: room.pid,
        )
        self._diary.begin(entry)

    def _note_end(self, run: Run, room: Room, code: int | None) -> None:
        self._running -= 1
        performed = self._performed(run, room, code)
        if run.is_given_up and not (performed and not performed.error):
            return
        entry = self._entries.pop(run)
        entry.exit = _words(run, room, code)[:EXIT_LENGTH]
        entry.output = room.output.take()
        self._diary.end(entry)
        self._end(run.held, performed)

    def _performed(self, run: Run, room: Room, code: int | None) -> Performed | None:
        claim, database = run.held.claim, self._duty.database
        if run.outcome and (run.verdict is None or isinstance(run.outcome, Finished)):
            return elsewhere.performed(
                claim, run.outcome, said=run.said, database=database
            )
        if run.is_unbegun and run.verdict is None:
            return None
        error = run.verdict or ProcessExitError(
            f"The process of this job ended while it ran: {_words(run, room, code)}."
        )
        judge = policies.judge if run.verdict else policies.judge_crash
        return elsewhere.failed(
            claim,
            error,
            database=database,
            worker_id=self._duty.worker_name,
            policy=run.policy,
            started_at=run.started_at,
            judge=judge,
        )

    def _note_failure(self, run: Run) -> None:
        self._running -= 1
        self._end(run.held, None)

    def _note_loss(self) -> None:
        """No process can be born any more."""
        self._size = 0
        for held in self.recall():
            self._duty.on_end(Ended(held, None, is_recalled=True))
        self._duty.recycle("the process that bears those of isolated tasks has died")


def _words(run: Run, room: Room, code: int | None) -> str:
    """How the process has ended; nothing if it lives on."""
    if code is None:
        return "" if room.is_free else "died with the process that bore it"
    if run.outcome and not code:
        return room.words
    if code == ExitCode.OUT_OF_MEMORY or code < 0:
        return in_words(code)
    return f"exited with code {code}"
