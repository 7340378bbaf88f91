"""A claim ──▶ user code ──▶ an outcome. The one place where tasks are called."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from inspect import iscoroutinefunction
from traceback import clear_frames
from typing import Any

from django.utils import timezone

from robust_queue import policies, registry, transactions
from robust_queue.aliases import options_of
from robust_queue.arguments import dump_result, load_call
from robust_queue.compat import (
    AnyResult,
    AnyTask,
    TaskResult,
    TaskResultStatus,
    context_of,
)
from robust_queue.configuration import BackendOptions
from robust_queue.context import running
from robust_queue.exceptions import SerializationError
from robust_queue.models import Attempt as EarlierAttempt
from robust_queue.stores.rows import Claim, Failed, Finished, Outcome

from . import announce, results
from .failure import describe


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

    def announce(self) -> None:
        """Tell the world. To be called by whoever has recorded the outcome."""
        match self.outcome:
            case Failed(retry_at=datetime()) as failure:
                announce.retried(self.result, failure, self.error)
            case Finished() as success if self._attempt.may_be_told_briefly:
                if not announce.is_told_briefly(self._attempt.claim, success):
                    announce.finished(self.result)
            case _:
                announce.finished(self.result, self.error)


def perform(claim: Claim, *, database: str, worker_id: str) -> Performed:
    """Run a claimed job. Whatever the task raises becomes its failure.

    An error before the task began is raised: the claim can be given back. From the
    moment the task could have begun, everything is an outcome.
    """
    with running(claim):
        begun = begin(claim, database=database, worker_id=worker_id)
        return begun.run() if isinstance(begun, Attempt) else begun


def begin(
    claim: Claim, *, database: str, worker_id: str, is_heard: bool = True
) -> "Attempt | Performed":
    """Do everything that comes before the call; a job that cannot be called has failed.

    To be called where the job is the current one. Whoever knows that nobody listens to
    the beginning of tasks says so. An error of the queue itself is raised: the claim
    can be given back.
    """
    attempt = Attempt(claim, database=database, worker_id=worker_id)
    try:
        attempt.prepare(is_heard=is_heard)
    except BaseException as error:
        return attempt.failed(error)
    return attempt


class Attempt:
    """A job that has begun: to be run, once, in the one way or the other."""

    __slots__ = (
        "_args",
        "_declared",
        "_earlier",
        "_kwargs",
        "_result",
        "_returned",
        "_started_at",
        "_task",
        "_worker_id",
        "claim",
        "outcome",
    )

    def __init__(self, claim: Claim, *, database: str, worker_id: str) -> None:
        self.claim = claim
        self._declared: AnyTask | None = registry.find(claim.task_path)
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
            self._result = self._running()
            self._conclude()
        return self._result

    @property
    def may_be_told_briefly(self) -> bool:
        """Is there nothing to it that only its result could tell?"""
        is_from_backport = getattr(self._declared, "from_backport", False)
        return self.claim.attempts == 1 and not is_from_backport

    def is_heard(self, name: str) -> bool:
        """Would anybody listen to that signal of this task?"""
        is_from_backport = getattr(self._declared, "from_backport", False)
        return announce.is_heard(name, is_from_backport=is_from_backport)

    def prepare(self, *, is_heard: bool = True) -> None:
        """Find out what is to be called, and tell that it begins."""
        self._task: AnyTask = registry.resolve(self.claim.task_path)
        self._args, self._kwargs = load_call(self.claim.arguments)
        if is_heard and self.is_heard("task_started"):
            announce.started(self.result)
        if self._task.takes_context:
            self._args.insert(0, context_of(self._task, self.result))

    def run(self) -> Performed:
        """Call the task, whatever kind of function it is, and wait for its end."""
        before = transactions.depths()
        try:
            try:
                returned = _callable(self._task)(*self._args, **self._kwargs)
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
        options, claim = options_of(self.claim.backend), self.claim
        text = _stored(returned, options)
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
                result=text,
                keep=options.preserve_finished_jobs,
            )
        )

    def failed(self, error: BaseException) -> Performed:
        """The attempt has come to this."""
        _make_room(error)
        claim, now = self.claim, timezone.now()
        failure = Failed(
            job_id=claim.job_id,
            token=claim.token,
            attempts=claim.attempts,
            worker_id=self._worker_id,
            started_at=self._started_at,
            finished_at=now,
            **describe(error),
            retry_at=policies.retry_at(
                self._declared, error, attempts=claim.attempts, now=now
            ),
        )
        return self._ended(failure, error)

    def _ended(self, outcome: Outcome, error: BaseException | None = None) -> Performed:
        self.outcome = outcome
        self._conclude()
        return Performed(self, outcome, error)

    # ── What others see of it ──────────────────────────────────────────────────

    def _running(self) -> AnyResult:
        claim, earlier = self.claim, self._earlier
        args, kwargs = results.shown_call(claim.arguments)
        return TaskResult(
            task=results.restored_task(
                claim.task_path,
                backend=claim.backend,
                priority=claim.priority,
                queue_name=claim.queue_name,
                run_after=claim.run_after,
            ),
            id=str(claim.job_id),
            status=TaskResultStatus.RUNNING,
            enqueued_at=claim.enqueued_at,
            started_at=earlier[0].started_at if earlier else self._started_at,
            finished_at=None,
            last_attempted_at=self._started_at,
            args=args,
            kwargs=kwargs,
            backend=claim.backend,
            errors=[results.error_of(attempt) for attempt in earlier],
            worker_ids=[*(attempt.worker_id for attempt in earlier), self._worker_id],
        )

    def _conclude(self) -> None:
        """Tell whoever has the result what has become of it."""
        if self._result is None:
            return
        match self.outcome:
            case Finished() as end:
                self._show("_return_value", self._returned)
                self._show("status", TaskResultStatus.SUCCESSFUL)
                self._show("finished_at", end.finished_at)
            case Failed(retry_at=None) as end:
                self._result.errors.append(results.error_of(end))
                self._show("status", TaskResultStatus.FAILED)
                self._show("finished_at", end.finished_at)
            case Failed() as end:
                # The attempt is over, the task is not.
                self._result.errors.append(results.error_of(end))
                self._show("status", TaskResultStatus.READY)

    def _show(self, name: str, value: Any) -> None:
        object.__setattr__(self._result, name, value)


def _callable(task: AnyTask) -> Callable[..., Any]:
    """What to call. Django's own call() asks each time what kind of function it is."""
    return task.func if _is_plain(type(task).call, task.func) else task.call


@lru_cache(maxsize=1024)
def _is_plain(call: Callable[..., Any], func: Callable[..., Any]) -> bool:
    is_djangos = call.__module__ in {"django.tasks.base", "django_tasks.base"}
    return is_djangos and not iscoroutinefunction(func)


def _make_room(error: BaseException) -> None:
    """What a task has used up is freed with its frames, which its error holds."""
    if isinstance(error, MemoryError):
        clear_frames(error.__traceback__)


def _stored(returned: Any, options: BackendOptions) -> str:
    if returned is None:
        return "null"  # which most tasks return
    try:
        text = dump_result(returned)
    except SerializationError as error:
        # The contract asks for exactly this class.
        raise TypeError(str(error)) from None
    if len(text) > options.max_result_size:
        raise ValueError(
            f"The result takes {len(text):,} bytes, more than the "
            f"{options.max_result_size:,} allowed by MAX_RESULT_SIZE."
        )
    return text
