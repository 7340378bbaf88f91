"""Filters whose choices cost next to nothing to find."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db import router
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.queues import queue_names
from robust_queue.models import FailedExecution, Job

from .display import STATES

# The latest failures tell which exceptions there are to choose from.
LOOKED_AT = 1_000

Choices = Iterable[tuple[Any, Any]]


class StateFilter(admin.SimpleListFilter):
    """Where a job stands."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [(state, label) for state, label in STATES.items() if state != "lost"]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in STATES or self.value() == "lost":
            return queryset
        return queryset.filter(**{f"{self.value()}_execution__isnull": False})


class QueueFilter(admin.SimpleListFilter):
    """The queue that a row itself names."""

    title = _("queue")
    parameter_name = "queue"
    column = "queue_name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [(name, name) for name in queue_names(router.db_for_read(Job))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return (
            queryset.filter(**{self.column: self.value()}) if self.value() else queryset
        )


class JobQueueFilter(QueueFilter):
    """The queue that the job of a row names."""

    column = "job__queue_name"


class ExceptionFilter(admin.SimpleListFilter):
    """What was raised lately."""

    title = _("exception")
    parameter_name = "exception"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        latest = FailedExecution.objects.order_by("-finished_at")
        names = latest.values_list("exception_class", flat=True)[:LOOKED_AT]
        return [(name, name.rpartition(".")[2]) for name in sorted(set(names))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return (
            queryset.filter(exception_class=self.value()) if self.value() else queryset
        )
