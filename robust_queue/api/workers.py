"""The protocol of workers outside: register, ping, dequeue, report, leave.

It is as simple as it can be: an id and a secret are all that a worker has to keep, and
every call may be repeated.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status

from robust_queue.lifecycle import enlist
from robust_queue.lifecycle.enlist import ExternalWorker, Pulse
from robust_queue.lifecycle.entrust import Entrusted, Wanted, ends_at
from robust_queue.lifecycle.outside import End, Report
from robust_queue.lifecycle.receipts import Receipt
from robust_queue.lifecycle.report import claim_of, report
from robust_queue.models import Cancellation

from . import worker_schemas as schemas
from .access import (
    IsWorker,
    Needs,
    audit,
    caller_in,
    database_of,
    enlisted_in,
)
from .deeds import WORK
from .secrets import secret_of
from .served import served_queues
from .tally import count
from .waiting import awaited

router = Router(tags=["Workers"])


@router.post("", auth=Needs(WORK), response={201: schemas.Registered})
def register(
    request: HttpRequest, told: schemas.Registration | None = None
) -> Status[dict[str, Any]]:
    """Register a worker. An empty body will do."""
    told, caller = told or schemas.Registration(), caller_in(request)
    database = database_of(request)
    # Nobody works by a session.
    token: Any = caller.token
    queues = served_queues(database, told.queues, caller.scopes)
    worker = enlist.enlist(
        database,
        queues=queues,
        name=told.name,
        version=told.version,
        hostname=told.hostname,
        pid=told.pid,
        token_id=token.pk,
    )
    audit(caller, "register worker", worker.name, worker.id)
    return Status(201, _registered(worker))


@router.post("/{uuid:worker_id}/ping", auth=IsWorker(), response=schemas.Pulse)
def ping(
    request: HttpRequest, worker_id: UUID, told: schemas.Ping | None = None
) -> dict[str, Any]:
    """Tell that the worker lives, every minute or so.

    `alive` is `false` if it was taken for dead: then all its work is somebody else's,
    and it registers anew.
    """
    worker = _worker(request)
    if worker is None:
        return _heard(Pulse(is_alive=False))
    told = told or schemas.Ping()
    known = None if told.jobs is None else frozenset(told.jobs)
    return _heard(enlist.ping(database_of(request), worker, known, as_of=told.as_of))


@router.post("/{uuid:worker_id}/dequeue", auth=IsWorker(), response=schemas.Dequeued)
def dequeue(
    request: HttpRequest, worker_id: UUID, told: schemas.Dequeue | None = None
) -> dict[str, Any]:
    """Take jobs, as many as there is room for; wait for them if that is asked for.

    What is told of is claimed, and is to be begun at once.
    """
    told, worker = told or schemas.Dequeue(), _worker(request)
    if worker is None:
        return {**_heard(Pulse(is_alive=False)), "jobs": []}
    database = database_of(request)
    queues = worker.queues
    if told.queues:
        queues = served_queues(database, told.queues, enlisted_in(request).scopes)
    wanted = Wanted(queues=queues, limit=told.limit, request_id=told.request_id)
    pulse, jobs = awaited(request, database, worker, wanted, wait=told.wait)
    return {**_heard(pulse), "jobs": [_work(each) for each in jobs]}


@router.post(
    "/{uuid:worker_id}/jobs/{uuid:job_id}/heartbeat",
    auth=IsWorker(),
    response=schemas.Heartbeat,
)
def heartbeat(
    request: HttpRequest, worker_id: UUID, job_id: UUID, told: schemas.Held
) -> dict[str, Any]:
    """Tell that a job is being worked on, and hear whether it still should be."""
    database, worker = database_of(request), _worker(request)
    if worker is None or not enlist.prolong(database, worker):
        return dict(_DEAD)
    receipt = Receipt.read(told.token)
    claim = claim_of(database, worker_id, job_id, receipt)
    requests = Cancellation.objects.using(database).filter(pk=job_id)
    may_be_cancelled = claim is not None and worker.is_to_cancel
    return {
        "alive": True,
        "held": claim is not None,
        "cancelled": may_be_cancelled and requests.exists(),
        **_time_of(ends_at(claim, receipt.claimed_at) if claim else None),
    }


@router.post("/{uuid:worker_id}/outcomes", auth=IsWorker(), response=schemas.Reported)
def outcomes(
    request: HttpRequest, worker_id: UUID, told: schemas.Outcomes
) -> dict[str, Any]:
    """Report how attempts have ended. To send a report again changes nothing."""
    database, worker = database_of(request), _worker(request)
    if worker is None or not enlist.prolong(database, worker):
        return {"alive": False, "outcomes": [_unrecorded(it) for it in told.outcomes]}
    reports = [_report(each) for each in told.outcomes]
    answers, recorded = report(database, worker, reports)
    count(database, recorded)
    return {
        "alive": True,
        "outcomes": [
            {"job": it.job_id, "recorded": it.is_recorded, "state": it.state}
            for it in answers
        ],
    }


@router.delete("/{uuid:worker_id}", auth=IsWorker(), response=schemas.Dismissed)
def dismiss(request: HttpRequest, worker_id: UUID) -> dict[str, Any]:
    """Sign off: what the worker still has goes back to its queue at once."""
    worker = _worker(request)
    if worker is None:
        return {"released": 0}
    released = enlist.dismiss(database_of(request), worker)
    audit(enlisted_in(request), "sign off, jobs that go back:", released)
    return {"released": released}


def _registered(worker: ExternalWorker) -> dict[str, Any]:
    return {
        "id": worker.id,
        "secret": secret_of(worker.id),
        "name": worker.name,
        "queues": list(worker.queues),
        "ping_every": enlist.ping_every(),
        "valid_for": enlist.valid_for(),
    }


def _work(entrusted: Entrusted) -> dict[str, Any]:
    claim = entrusted.claim
    return {
        "id": claim.job_id,
        "token": str(entrusted.receipt),
        "task": claim.task_path,
        "queue": claim.queue_name,
        "args": entrusted.args,
        "kwargs": entrusted.kwargs,
        "attempt": claim.attempts,
        "enqueued_at": claim.enqueued_at,
        **_time_of(entrusted.ends_at),
    }


def _time_of(ends_at: datetime | None) -> dict[str, Any]:
    if ends_at is None:
        return {"deadline": None, "seconds_left": None}
    left = (ends_at - datetime.now(UTC)).total_seconds()
    return {"deadline": ends_at, "seconds_left": max(left, 0.0)}


_DEAD = {"alive": False, "held": False, "cancelled": False, **_time_of(None)}


def _report(told: schemas.Outcome) -> Report:
    error = told.error or schemas.Failure()
    after = told.retry_after
    return Report(
        job_id=told.job,
        receipt=Receipt.read(told.token),
        end=End(told.outcome),
        result=told.result,
        error=error.type,
        message=error.message,
        traceback=error.traceback,
        retry_after=None if after is None else timedelta(seconds=after),
        is_final=told.final,
    )


def _unrecorded(told: schemas.Outcome) -> dict[str, Any]:
    # Whatever it has done is somebody else's by now.
    return {"job": told.job, "recorded": False, "state": "unknown"}


def _heard(pulse: Pulse) -> dict[str, Any]:
    return {
        "alive": pulse.is_alive,
        "cancelled": list(pulse.cancelled),
        "quiet": pulse.is_quiet,
        "stop": pulse.orders.is_to_stop,
        "now": datetime.now(UTC),
    }


def _worker(request: HttpRequest) -> ExternalWorker | None:
    return enlisted_in(request).worker
