"""Filters whose choices cost next to nothing to find."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.queues import queue_names
from robust_queue.lifecycle.selection import KINDS
from robust_queue.models import FailedExecution
from robust_queue.models.attempts import KINDS as LABELS

from .databases import database_of

# The latest failures tell which exceptions and queues there are to choose from.
LOOKED_AT = 1_000

Choices = Iterable[tuple[Any, Any]]


class QueueFilter(admin.SimpleListFilter):
    """The queue that a row itself names."""

    title = _("queue")
    parameter_name = "queue"
    column = "queue_name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [(name, name) for name in queue_names(database_of(request))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return (
            queryset.filter(**{self.column: self.value()}) if self.value() else queryset
        )


class JobQueueFilter(QueueFilter):
    """The queue of a failed job. Nothing else may wait there any more."""

    column = "job__queue_name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [(name, name) for name in _of_latest_failures(request, self.column)]


class KindFilter(admin.SimpleListFilter):
    """In which way a job has failed."""

    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        labels: dict[str, Any] = dict(LABELS)
        return [(word, labels[kind.value]) for word, kind in KINDS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        kind = KINDS.get(self.value() or "")
        return queryset if kind is None else queryset.filter(kind=kind)


class ExceptionFilter(admin.SimpleListFilter):
    """What was raised lately."""

    title = _("exception")
    parameter_name = "exception"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        names = _of_latest_failures(request, "exception_class")
        return [(name, name.rpartition(".")[2]) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return (
            queryset.filter(exception_class=self.value()) if self.value() else queryset
        )


class KeyFilter(admin.SimpleListFilter):
    """The concurrency key that a link named. To offer all of them would take long."""

    title = _("concurrency key")
    parameter_name = "key"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        key = request.GET.get(self.parameter_name)
        return [(key, key)] if key else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        key = self.value()
        return queryset.filter(concurrency_key=key) if key else queryset


def _of_latest_failures(request: HttpRequest, column: str) -> list[str]:
    failed = FailedExecution.objects.using(database_of(request))
    latest = failed.order_by("-finished_at").values_list(column, flat=True)
    return sorted(set(latest[:LOOKED_AT]))
