"""A claim ──▶ user code ──▶ an outcome. The one place where tasks are called."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from django.utils import timezone

from robust_queue import policies, registry, transactions
from robust_queue.arguments import load_call
from robust_queue.compat import (
    AnyResult,
    AnyTask,
)
from robust_queue.context import Running, context_of, here, running
from robust_queue.exceptions import (
    Snooze,
    TaskExpired,
)
from robust_queue.models import Attempt as EarlierAttempt
from robust_queue.policies import Policy
from robust_queue.stores.rows import Claim, Failed, Finished, Outcome, Snoozed

from . import announce, results
from .calls import as_told, callable_of, is_kept, make_room, stored
from .failure import describe
from .moments import later
from .policy import Terms, terms_for
from .recurred import is_of_history
from .unique import unlock_at_start

# Calls a function with these arguments.
Caller: TypeAlias = Callable[
    [Callable[..., Any], Sequence[Any], Mapping[str, Any]], Any
]


class Performed:
    """An attempt that was made: what to record, and what to tell when it is."""

    __slots__ = ("_attempt", "error", "outcome")

    def __init__(
        self,
        attempt: "Attempt",
        outcome: Outcome,
        error: BaseException | None = None,
    ) -> None:
        self._attempt = attempt
        self.outcome = outcome
        self.error = error

    @property
    def result(self) -> AnyResult:
        return self._attempt.result

    @property
    def is_heard(self) -> bool:
        """Would anybody listen?"""
        return self.error is not None or self._attempt.is_heard("task_finished")

    @property
    def is_over(self) -> bool:
        """Is the job over, or is it to be tried again?"""
        match self.outcome:
            case Finished() | Failed(retry_at=None):
                return True
        return False

    def announce(self) -> None:
        """Tell the world. To be called by whoever has recorded the outcome."""
        match self.outcome:
            case Failed(retry_at=datetime()) as failure:
                announce.retried(self.result, failure, self.error)
            case Finished() as success if self._attempt.may_be_told_briefly:
                if not announce.is_told_briefly(self._attempt.claim, success):
                    announce.finished(self.result)
            case Snoozed(until=until):
                announce.snoozed(self.result, self.error, until)
            case _:
                announce.finished(self.result, self.error)


def perform(claim: Claim, *, database: str, worker_id: str) -> Performed:
    """Run a claimed job. Whatever the task raises becomes its failure.

    An error before the task began is raised: the claim can be given back. From the
    moment the task could have begun, everything is an outcome.
    """
    with running(claim):
        unlock_at_start(claim, database=database)
        begun = begin(claim, database=database, worker_id=worker_id)
        return begun.run() if isinstance(begun, Attempt) else begun


def begin(
    claim: Claim,
    *,
    database: str,
    worker_id: str,
    terms: Terms | None = None,
    is_heard: bool = True,
) -> "Attempt | Performed":
    """Do everything that comes before the call; a job that cannot be called has failed.

    To be called where the job is the current one, and has let go of its key. Whoever
    knows that nobody listens to the beginning of tasks says so. An error of the queue
    itself is raised: the claim can be given back.
    """
    attempt = Attempt(claim, database=database, worker_id=worker_id, terms=terms)
    try:
        attempt.prepare(is_heard=is_heard)
    except BaseException as error:
        return attempt.failed(error)
    return attempt


class Attempt:
    """A job that has begun: to be run, once, in the one way or the other."""

    __slots__ = (
        "_args",
        "_earlier",
        "_kwargs",
        "_result",
        "_returned",
        "_started_at",
        "_task",
        "_terms",
        "_worker_id",
        "claim",
        "outcome",
    )

    def __init__(
        self,
        claim: Claim,
        *,
        database: str,
        worker_id: str,
        terms: Terms | None = None,
    ) -> None:
        self.claim = claim
        self._terms = terms or terms_for(claim)
        self.outcome: Outcome | None = None
        self._worker_id = worker_id
        self._started_at = timezone.now()
        self._returned: Any = None
        self._result: AnyResult | None = None
        # The first attempt has none before it, which spares nearly every job a query.
        self._earlier: Sequence[EarlierAttempt] = ()
        if claim.attempts > 1:
            self._earlier = results.earlier_attempts(database, claim.job_id)

    @property
    def result(self) -> AnyResult:
        """As it stands. Made for whoever asks first: mostly nobody does."""
        if self._result is None:
            self._result = results.running(
                self.claim,
                self._earlier,
                started_at=self._started_at,
                worker_id=self._worker_id,
            )
            self._conclude()
        return self._result

    @property
    def policy(self) -> Policy:
        return self._terms.policy

    @property
    def may_be_told_briefly(self) -> bool:
        """Is there nothing to it that only its result could tell?"""
        is_from_backport = getattr(self._terms.task, "from_backport", False)
        return self.claim.attempts == 1 and not is_from_backport

    def is_heard(self, name: str) -> bool:
        """Would anybody listen to that signal of this task?"""
        is_from_backport = getattr(self._terms.task, "from_backport", False)
        return announce.is_heard(name, is_from_backport=is_from_backport)

    def prepare(self, *, is_heard: bool = True) -> None:
        """Find out what is to be called, and tell that it begins."""
        self._task: AnyTask = registry.resolve(self.claim.task_path)
        if self.policy.deadline is not None:
            self._check_deadline()
        self._args, self._kwargs = load_call(self.claim.arguments)
        if is_heard and self.is_heard("task_started"):
            announce.started(self.result)
        if self._task.takes_context:
            now_running = here() or Running(self.claim)
            self._args.insert(0, context_of(self._task, self.result, now_running))

    def _check_deadline(self) -> None:
        ends = policies.expires_at(self.policy, self.claim.enqueued_at)
        if ends is not None and self._started_at > ends:
            late = self._started_at - ends
            raise TaskExpired(f"The job came to run {late} after its deadline.")

    def run(self, call: Caller | None = None) -> Performed:
        """Call the task, whatever kind of function it is, and wait for its end.

        ``call`` is who calls it, for those that have to be interrupted.
        """
        before, function = transactions.depths(), callable_of(self._task)
        try:
            try:
                if call is None:
                    returned = function(*self._args, **self._kwargs)
                else:
                    returned = call(function, self._args, self._kwargs)
            finally:
                unended = transactions.close_behind(self.claim.task_path, before)
            if unended:
                raise unended  # noqa: TRY301
            return self._finished(returned)
        except BaseException as error:
            return self.failed(error)

    async def run_async(self) -> Performed:
        """Await the task, which is a coroutine function, on the loop of the caller.

        Connections are none of its business: those that it uses are in other threads.
        """
        try:
            returned = await self._task.acall(*self._args, **self._kwargs)
            return self._finished(returned)
        except BaseException as error:
            return self.failed(error)

    def _finished(self, returned: Any) -> Performed:
        (policy, options, _), claim = self._terms, self.claim
        text = stored(returned, options)
        self._returned = returned
        return self._ended(
            # Written out: a dictionary in between takes as long as all of the rest.
            Finished(
                job_id=claim.job_id,
                token=claim.token,
                attempts=claim.attempts,
                worker_id=self._worker_id,
                started_at=self._started_at,
                finished_at=timezone.now(),
                concurrency_key=claim.concurrency_key,
                unique_key=claim.unique_key,
                result=text,
                keep=is_kept(policy, options) or is_of_history(claim),
            )
        )

    def failed(self, error: BaseException) -> Performed:
        """The attempt has come to this."""
        make_room(error)
        now = timezone.now()
        if isinstance(error, Snooze):
            try:
                until = later(error.until, now=now)
            except ValueError as problem:
                return self.failed(problem)
            return self._ended(Snoozed(**self._facts(now), until=until), error)
        verdict = policies.judge(
            self.policy,
            error,
            attempts=self.claim.attempts,
            now=now,
            enqueued_at=self.claim.enqueued_at,
            who=self.claim.task_path,
        )
        failure = Failed(
            **self._facts(now),
            **describe(error),
            kind=verdict.kind.value,
            retry_at=verdict.retry_at,
        )
        return self._ended(failure, as_told(error, verdict.kind))

    def _facts(self, now: datetime) -> dict[str, Any]:
        return {
            "job_id": self.claim.job_id,
            "token": self.claim.token,
            "attempts": self.claim.attempts,
            "worker_id": self._worker_id,
            "started_at": self._started_at,
            "finished_at": now,
            "concurrency_key": self.claim.concurrency_key,
            "unique_key": self.claim.unique_key,
        }

    def _conclude(self) -> None:
        """Tell whoever has the result what has become of it."""
        if self._result is not None and self.outcome is not None:
            count = len(self._earlier)
            results.conclude(self._result, self.outcome, self._returned, earlier=count)

    def _ended(self, outcome: Outcome, error: BaseException | None = None) -> Performed:
        self.outcome = outcome
        self._conclude()
        return Performed(self, outcome, error)
