"""``manage.py robust_queue why ID``: why a job is not running."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management import CommandError
from django.core.management.base import OutputWrapper

from robust_queue.lifecycle.why import why_not_running
from robust_queue.models import Job

HELP = "tell why a job is not running, or what it does instead"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", type=UUID, metavar="ID", help="ids of jobs")


def run(database: str, options: dict[str, Any], out: OutputWrapper) -> None:
    """Tell of each, and in the end which there are not."""
    ids = list(dict.fromkeys(options["ids"]))
    jobs = Job.objects.using(database).filter(pk__in=ids).with_state()
    found = {job.id: job for job in jobs}
    for job_id in ids:
        if job_id in found:
            _tell(database, found[job_id], out)
    if missing := [str(each) for each in ids if each not in found]:
        raise CommandError(f"There is no job {', '.join(missing)}.")


def _tell(database: str, job: Job, out: OutputWrapper) -> None:
    out.write(f"{job.task_path} {job.id} is {job.state}.")
    for reason in why_not_running(database, job):
        out.write(f"  {reason.text}")
