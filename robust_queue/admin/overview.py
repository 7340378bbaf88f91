"""The overview: what happened lately, what waits, who is there, what looks wrong."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import BadRequest
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.alarms import Alarm, alarms
from robust_queue.lifecycle.busiest import Busiest, busiest
from robust_queue.lifecycle.failures import failures
from robust_queue.lifecycle.roster import Roster, roster
from robust_queue.lifecycle.selection import PENDING
from robust_queue.lifecycle.statistics import (
    PERIODS,
    PeriodName,
    history,
    sparklines,
)
from robust_queue.models import FailedExecution, Job, Process, Rollup

from . import databases, display, navigation
from .base import ReadOnlyAdmin
from .overview_charts import figures, moment_of
from .pages import PAGES, PageAdmin
from .permissions import may_look
from .queue_rows import depth_of_late, shown_ready
from .tabs import LABELS, counts_of_states, shown_count

GROUPS_SHOWN = 5
FAILURES_LOOKED_AT = 1_000

PERIOD_LABELS: dict[PeriodName, Any] = {
    "hour": _("Last hour"),
    "day": _("Last day"),
    "week": _("Last week"),
}


class Overview(models.Model):
    """A name in the index of the admin; there is no such table."""

    name = models.CharField(primary_key=True, max_length=128)

    class Meta:
        app_label = "robust_queue"
        apps = PAGES
        managed = False
        verbose_name = _("overview")
        verbose_name_plural = _("overview")

    def __str__(self) -> str:
        return str(self.name)


@admin.register(Overview)
class OverviewAdmin(PageAdmin):
    """Whoever may view jobs sees it. It has no buttons but to choose a database."""

    title = _("Overview")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_look(request, Job)

    def facts(self, request: HttpRequest) -> dict[str, Any]:
        database = databases.database_of(request)
        period = _period_in(request)
        told = history(database, period)
        return {
            "periods": _periods(period),
            "figures": figures(told),
            "begins": moment_of(told.points[0], period),
            "states": self._states(database),
            "tables": navigation.tables(self.admin_site, request),
            **self._present(request, database),
            **self._failures(request, database),
        }

    def refusal(self, request: HttpRequest, back: str = "") -> None:
        """None: here another database is what is asked for."""

    def press(self, request: HttpRequest) -> HttpResponse:
        """Look at another database from now on."""
        if not databases.choose(request, request.POST.get("database", "")):
            raise BadRequest("There is no queue in that database.")
        return HttpResponseRedirect(request.get_full_path())

    def _states(self, database: str) -> list[dict[str, Any]]:
        counts = counts_of_states(database)
        return [
            {
                "label": LABELS[state],
                "number": shown_count(number),
                "address": self._address("job", state=state),
            }
            for state, number in counts.items()
            if state and state != PENDING
        ]

    def _present(self, request: HttpRequest, database: str) -> dict[str, Any]:
        found = roster(database)
        queues = busiest(database, found.workers)
        told = alarms(database, found, queues)
        return {
            "alarms": [self._alarm(each) for each in told],
            "processes": _head_count(found) if may_look(request, Process) else None,
            "processes_address": self._address("processtree"),
            "queues": self._queues(database, queues),
            "queues_address": self._address("queue"),
        }

    def _queues(self, database: str, found: Busiest) -> list[dict[str, Any]]:
        drawn = sparklines(database, [each.name for each in found.rows])
        return [
            {
                "name": display.plain(each.name),
                "address": self._address("job", queue=each.name),
                "is_paused": each.is_paused,
                "ready": shown_ready(each, found.counted_to, drawn[each.name]),
                "latency": display.duration(each.latency),
                **depth_of_late(drawn[each.name]),
            }
            for each in found.rows
        ]

    def _failures(self, request: HttpRequest, database: str) -> dict[str, Any]:
        if not may_look(request, FailedExecution):
            return {}
        found = failures(database, most=FAILURES_LOOKED_AT).groups[:GROUPS_SHOWN]
        groups = [
            {
                "task": display.path(each.fingerprint.task_path),
                "exception": display.plain(
                    each.fingerprint.exception_class.rpartition(".")[2] or "-"
                ),
                "count": each.count,
                "last_at": each.last_at,
            }
            for each in found
        ]
        return {"groups": groups, "failures_address": self._address("failures")}

    def _alarm(self, alarm: Alarm) -> dict[str, Any]:
        address = self._address(alarm.page, **alarm.query) if alarm.page else ""
        text = display.plain(alarm.text)
        return {"text": text, "address": address, "is_wanted": alarm.is_wanted}

    def _address(self, page: str, **query: str) -> str:
        return display.list_url(self.admin_site, page, urlencode(query))


class SpanFilter(admin.SimpleListFilter):
    """How long a stretch of time is. To find out which there are would take long."""

    title = _("span")
    parameter_name = "span"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(str(each.span), each.span) for each in PERIODS.values()]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        spans = {str(each.span): each.span for each in PERIODS.values()}
        span = spans.get(self.value() or "")
        return queryset if span is None else queryset.filter(span=span)


@admin.register(Rollup)
class RollupAdmin(ReadOnlyAdmin):
    """What the charts are drawn from."""

    list_display = [
        *("queue_name", "span", "at", "finished", "failed", "depth", "latency"),
        "process_id",
    ]
    list_filter = [SpanFilter]
    id_lookups = ("process_id",)
    name_lookups = ("queue_name",)
    search_help_text = _("The id of a process, or the whole name of a queue.")
    wide_columns = ("waits", "runs")
    ordering = ["-pk"]


def _period_in(request: HttpRequest) -> PeriodName:
    """The one that the address names; of what makes no sense, the shortest."""
    asked = request.GET.get("period", "")
    return next((each for each in PERIODS if each == asked), "hour")


def _periods(current: PeriodName) -> list[navigation.Way]:
    return [
        navigation.Way(label, f"?period={name}", name == current)
        for name, label in PERIOD_LABELS.items()
    ]


def _head_count(found: Roster) -> dict[str, int]:
    alive = sum(each.is_alive for each in found.everybody)
    return {"alive": alive, "missing": len(found.everybody) - alive}
