"""What went wrong with a job: every attempt, what it said, and where."""

from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from robust_queue.models import Job

from . import display, tracebacks
from .job_timeline import LATEST_ATTEMPTS
from .jobs_list import told


def failures(job: Job) -> SafeString | str:
    """The latest attempt that failed, open, and those before it. One statement."""
    earlier = job.earlier_attempts.order_by("-attempts")[:LATEST_ATTEMPTS]
    last = [job.failed_execution] if job.state == "failed" else []
    rows = [*last, *earlier]
    if not rows:
        return "-"
    items = ((_failure(row, is_open=at == 0),) for at, row in enumerate(rows))
    return format_html_join("", "{}", items)


def _failure(row: Any, *, is_open: bool) -> SafeString:
    return format_html(
        '<details class="rqueue-failure"{}><summary>{} · {} · <bdi>{}</bdi></summary>'
        "{}{}</details>",
        SafeString(" open" if is_open else ""),
        _("attempt %d") % row.attempts,
        told(row.finished_at),
        display.plain(row.exception_class) or row.get_kind_display(),
        display.block(row.message),
        tracebacks.shown(row.traceback),
    )
