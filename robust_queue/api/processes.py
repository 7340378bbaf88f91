"""Processes: who is there, and what is asked of them."""

from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from robust_queue.exceptions import TuningError
from robust_queue.lifecycle.quiet import quiet_process, stop_process, wake_process
from robust_queue.lifecycle.roster import Member, Run, member_with_id, roster
from robust_queue.models import Process
from robust_queue.models.processes import EXTERNAL

from .access import Needs, audit, caller_in, database_of
from .deeds import LOOK_AT_PROCESSES, LOOK_AT_RUNS, MANAGE
from .problems import conflict, not_found
from .wire import Stamp, among

KINDS = ("Supervisor", "Worker", "Dispatcher", "Scheduler", EXTERNAL)

router = Router(tags=["Processes"])


class RunFacts(Schema):
    """A job that a worker runs, or has taken to run next."""

    job: UUID
    task: str
    seconds: float = Field(description="For how long it has had it.")


class WorkFacts(Schema):
    """What a worker serves, and what it has."""

    queues: list[str]
    threads: int | None = Field(description="`null` of one outside: nobody knows.")
    busy: int
    runs: list[RunFacts] = Field(
        description="The oldest twenty; none to sessions without view_claimedexecution."
    )
    is_external: bool = Field(description="It asks for its jobs over this API.")
    version: str = Field(description="Of one outside, as it has told.")


class ProcessFacts(Schema):
    """A supervisor, worker, dispatcher or scheduler, of ours or outside."""

    id: UUID
    kind: Annotated[str, among(*KINDS)]
    name: str
    hostname: str
    pid: int
    supervisor: UUID | None
    started_at: Stamp
    last_heartbeat_at: Stamp
    silent_for: float = Field(description="Seconds.")
    is_alive: bool
    is_quiet: bool
    is_asked_to_stop: bool
    memory: int | None = Field(description="Bytes.")
    worker: WorkFacts | None


class Asked(Schema):
    """What was asked of a process, which it heeds within seconds."""

    asked: bool = True


@router.get("", auth=Needs(LOOK_AT_PROCESSES), response=list[ProcessFacts])
def list_processes(request: HttpRequest) -> list[dict[str, Any]]:
    """Who is there, the living and the silent.

    If there are more than five hundred, those that were heard of last.
    """
    everybody = roster(database_of(request)).everybody
    names_jobs = _may_name_jobs(request)
    return [_told(each, names_jobs=names_jobs) for each in everybody]


@router.get("/{uuid:process_id}", auth=Needs(LOOK_AT_PROCESSES), response=ProcessFacts)
def process(request: HttpRequest, process_id: UUID) -> dict[str, Any]:
    """One of them."""
    found = member_with_id(database_of(request), process_id)
    if found is None:
        raise not_found("There is no such process.", "unknown_process")
    return _told(found, names_jobs=_may_name_jobs(request))


@router.post("/{uuid:process_id}/quiet", auth=Needs(MANAGE), response=Asked)
def quiet_a_process(request: HttpRequest, process_id: UUID) -> dict[str, Any]:
    """Have a worker take nothing new, or all workers of a supervisor."""
    return _ask(request, quiet_process, process_id)


@router.post("/{uuid:process_id}/wake", auth=Needs(MANAGE), response=Asked)
def wake_a_process(request: HttpRequest, process_id: UUID) -> dict[str, Any]:
    """Have it take jobs again."""
    return _ask(request, wake_process, process_id)


@router.post("/{uuid:process_id}/stop", auth=Needs(MANAGE), response=Asked)
def stop_a_process(request: HttpRequest, process_id: UUID) -> dict[str, Any]:
    """Have it end when what it has is over. A worker of ours is replaced."""
    return _ask(request, stop_process, process_id)


def _ask(
    request: HttpRequest, ask: Callable[[str, UUID], Process], process_id: UUID
) -> dict[str, Any]:
    try:
        found = ask(database_of(request), process_id)
    except TuningError as refusal:
        if _exists(request, process_id):
            raise conflict(str(refusal), "wrong_state") from refusal
        raise not_found("There is no such process.", "unknown_process") from refusal
    audit(caller_in(request), ask.__name__, found.name)
    return {"asked": True}


def _exists(request: HttpRequest, process_id: UUID) -> bool:
    rows = Process.objects.using(database_of(request))
    return rows.filter(pk=process_id).exists()


def _may_name_jobs(request: HttpRequest) -> bool:
    return caller_in(request).may(LOOK_AT_RUNS)


def _told(member: Member, *, names_jobs: bool) -> dict[str, Any]:
    process = member.process
    return {
        "id": process.pk,
        "kind": process.kind,
        "name": process.name,
        "hostname": process.hostname,
        "pid": process.pid,
        "supervisor": process.supervisor_id,
        "started_at": process.created_at,
        "last_heartbeat_at": process.last_heartbeat_at,
        "silent_for": member.silent_for.total_seconds(),
        "is_alive": member.is_alive,
        "is_quiet": member.is_quiet,
        "is_asked_to_stop": member.is_asked_to_stop,
        "memory": process.memory,
        "worker": _work(member, names_jobs=names_jobs) if member.worker else None,
    }


def _work(member: Member, *, names_jobs: bool) -> dict[str, Any]:
    worker: Any = member.worker
    return {
        "queues": list(worker.queues),
        "threads": worker.threads,
        "busy": worker.busy,
        "runs": [_run(each) for each in member.runs] if names_jobs else [],
        "is_external": worker.is_external,
        "version": worker.version,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "job": run.job_id,
        "task": run.task_path,
        "seconds": run.lasts.total_seconds(),
    }
