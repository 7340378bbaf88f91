"""What has become of the instants of recurring tasks: their list, and their marks."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import display_for_value
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from robust_queue.models import Job, RecurringExecution
from robust_queue.models.recurring import Outcome

from . import charts, display
from .base import LeanChangeList, ReadOnlyAdmin
from .recurring_page import remark

REASON_WIDTH = 80
# The latest instants of all tasks, among which those of each one are looked for.
LOOKED_AT = 2_000
MARKS = 20

LABELS: dict[str, Any] = dict(Outcome.choices)


class MarkedChangeList(LeanChangeList):
    """Recurring tasks, each with its latest runs. One statement more."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows: Any = self.result_list
        found = _latest(self.root_queryset.db, {row.key for row in rows})
        for row in rows:
            row.latest = found[row.key]


def marks(runs: Iterable[RecurringExecution]) -> Any:
    """One bar for each, the newest last: as high as it took long, by its outcome."""
    shown = [*runs][:MARKS][::-1]
    if not shown:
        return ""
    lengths = [each.duration.total_seconds() if each.duration else 0 for each in shown]
    told = ", ".join(str(LABELS.get(each.outcome, each.outcome)) for each in shown)
    label = gettext("Latest runs: %s") % told
    return charts.marks(lengths, [each.outcome for each in shown], label)


def _latest(database: str, keys: set[str]) -> dict[str, list[RecurringExecution]]:
    rows = RecurringExecution.objects.using(database).order_by("-pk")
    narrow = rows.only("task_key", "outcome", "run_at", "started_at", "finished_at")
    found = defaultdict(list)
    # A run by hand may have been written down before one whose instant came earlier.
    for row in sorted(narrow[:LOOKED_AT], key=lambda row: row.run_at, reverse=True):
        if row.task_key in keys:
            found[row.task_key].append(row)
    return found


@admin.register(RecurringExecution)
class RecurringExecutionAdmin(ReadOnlyAdmin):
    """What has become of each instant."""

    list_display = [
        "task_key",
        "run_at",
        "shown_outcome",
        "shown_duration",
        "summary",
        "job_link",
    ]
    list_filter = ["outcome"]
    link_columns = ("task_key",)
    id_lookups = ("job_id",)
    name_lookups = ("task_key",)
    search_help_text = _("The id of a job, or the whole key of a recurring task.")
    ordering = ["-pk"]
    fields = [
        "task_key",
        "run_at",
        "shown_outcome",
        "shown_remark",
        "started_at",
        "finished_at",
        "shown_duration",
        "job_link",
        "created_at",
    ]
    readonly_fields = [
        "shown_outcome",
        "shown_remark",
        "shown_duration",
        "job_link",
        "created_at",
    ]

    @admin.display(description=_("outcome"))
    def shown_outcome(self, row: RecurringExecution) -> Any:
        if not row.by_hand:
            return row.get_outcome_display()
        by_hand = '{} <span class="rqueue-quiet">{}</span>'
        return format_html(by_hand, row.get_outcome_display(), gettext("by hand"))

    @admin.display(description=_("duration"))
    def shown_duration(self, row: RecurringExecution) -> str:
        return "" if row.duration is None else display.duration(row.duration)

    @admin.display(description=_("reason"))
    def shown_remark(self, row: RecurringExecution) -> str:
        return remark(row, display_for_value(row.skipped_until, ""))

    @admin.display(description=_("reason"))
    def summary(self, row: RecurringExecution) -> str:
        return Truncator(self.shown_remark(row)).chars(REASON_WIDTH)

    @admin.display(description=_("job"))
    def job_link(self, row: RecurringExecution) -> Any:
        if row.job_id is None:
            return "-"
        return display.link(self.admin_site, Job, row.job_id, row.job_id)
