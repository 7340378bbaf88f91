"""What has become of a job so far, step by step, and what it belongs to."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib.admin import AdminSite
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from robust_queue.flow.keys import split
from robust_queue.models import (
    Job,
    Process,
    RecurringExecution,
    RecurringTask,
    Semaphore,
)

from . import display
from .databases import home_of
from .jobs_list import badge, execution_of, told, took

# A job that was tried more often than that has an inline for the rest of them.
LATEST_ATTEMPTS = 10


class Step(NamedTuple):
    """Something that happened, when it began, and what there is to say about it."""

    label: Any
    at: datetime
    remarks: list[Any]


def timeline(site: AdminSite, job: Job) -> SafeString:
    """Enqueued, the attempts, and where it stands. Two statements."""
    attempts = _attempts(job)
    workers = _Workers(site, home_of(job), [each.worker_id for each in attempts])
    steps = [
        Step(_("enqueued"), job.enqueued_at, []),
        *(_attempt(each, workers) for each in attempts),
        *_standing(job),
    ]
    return format_html(
        '<ol class="rqueue-timeline">{}</ol>',
        format_html_join("", "<li>{}</li>", ((_shown(each),) for each in steps)),
    )


def recurring_link(site: AdminSite, job: Job) -> SafeString | str:
    """The way to the schedule that has enqueued it, if one has."""
    run = RecurringExecution.objects.using(home_of(job)).filter(job_id=job.pk).first()
    if run is None:
        return "-"
    row = RecurringTask.objects.using(home_of(job)).filter(key=run.task_key).first()
    if row is None:
        return format_html("{}", run.task_key)  # history outlives the schedule
    return display.link(site, RecurringTask, row.pk, run.task_key)


def key_links(site: AdminSite, job: Job) -> SafeString | str:
    """The ways to its concurrency keys, whose pages tell who has a slot."""
    keys = split(job.concurrency_key)
    links = [display.link(site, Semaphore, key, key) for key in keys]
    return display.sentences(links) if links else "-"


class _Workers:
    """The names of workers, as links to those that are still there."""

    def __init__(self, site: AdminSite, database: Any, names: list[str]) -> None:
        known = Process.objects.using(database).filter(name__in=names)
        self._site = site
        self._known = dict(known.values_list("name", "pk"))

    def __getitem__(self, name: str) -> Any:
        pk = self._known.get(name)
        return display.link(self._site, Process, pk, name) if pk else name


def _attempts(job: Job) -> list[Any]:
    """Those that are over, in order, and the one that was the last."""
    rows = job.earlier_attempts.order_by("-attempts").defer("message", "traceback")
    earlier = [*rows[:LATEST_ATTEMPTS]][::-1]
    is_over = job.state in {"finished", "failed"}
    return [*earlier, execution_of(job)] if is_over else earlier


def _attempt(row: Any, workers: _Workers) -> Step:
    remarks = [
        _("took %s") % took(row.finished_at - row.started_at),
        workers[row.worker_id],
        getattr(row, "exception_class", ""),
    ]
    return Step(_("attempt %d") % row.attempts, row.started_at, remarks)


def _standing(job: Job) -> Iterator[Step]:
    """Where it is now, and since when."""
    row = execution_of(job)
    if row is None:
        return
    remarks = []
    if job.state == "scheduled":
        remarks.append(_("due %s") % told(row.scheduled_at))
    if job.state in {"finished", "failed"}:
        whole = max(row.finished_at - job.enqueued_at, timedelta(0))
        remarks.append(_("%s after it was enqueued") % took(whole))
    yield Step(badge(job), row.since, remarks)


def _shown(step: Step) -> SafeString:
    remarks = ((each,) for each in step.remarks if each)
    return format_html(
        '{} {} <span class="rqueue-words">{}</span>',
        step.label,
        told(step.at),
        format_html_join(" · ", "{}", remarks),
    )
