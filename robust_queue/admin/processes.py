"""Processes: who is alive."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from robust_queue.configuration import current
from robust_queue.models import Process

from . import display, redaction
from .base import ReadOnlyAdmin

MEGABYTE = 1024 * 1024


def memory_of(process: Process) -> str:
    """What it told with its last heartbeat; nothing if it has told nothing."""
    if process.memory is None:
        return ""
    return f"{number_format(process.memory / MEGABYTE, 0, force_grouping=True)} MB"


@admin.register(Process)
class ProcessAdmin(ReadOnlyAdmin):
    """Supervisors, workers, dispatchers and schedulers."""

    list_display = [
        "name",
        "kind",
        "is_alive",
        "last_heartbeat_at",
        "created_at",
        "hostname",
        "pid",
        "shown_memory",
        "supervisor",
    ]
    list_filter = ["kind"]
    id_lookups = ("pk", "supervisor_id")
    name_lookups = ("name", "hostname")
    search_help_text = _("The id or the whole name of a process, or a host.")
    ordering = ["name"]
    fields = [
        "name",
        "kind",
        "is_alive",
        "last_heartbeat_at",
        "created_at",
        "hostname",
        "pid",
        "shown_memory",
        "supervisor_link",
        "shown_metadata",
        "id",
    ]
    readonly_fields = [
        "is_alive",
        "shown_memory",
        "supervisor_link",
        "shown_metadata",
        "id",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        heard = Process.objects.heard_within(current().process_alive_threshold)
        supervisor = Process.objects.filter(pk=OuterRef("supervisor_id"))
        processes = super().get_queryset(request)
        annotated: QuerySet[Any] = processes.annotate(
            heard_lately=Exists(heard.filter(pk=OuterRef("pk"))),
            supervisor_name=Subquery(supervisor.values("name")[:1]),
        )
        return annotated

    @admin.display(description=_("alive"), boolean=True)
    def is_alive(self, process: Any) -> bool:
        return bool(process.heard_lately)

    @admin.display(description=_("memory"))
    def shown_memory(self, process: Process) -> str:
        return memory_of(process) or "-"

    @admin.display(description=_("supervisor"), empty_value="-")
    def supervisor(self, process: Any) -> Any:
        return process.supervisor_name or process.supervisor_id

    @admin.display(description=_("supervisor"))
    def supervisor_link(self, process: Any) -> Any:
        identity = process.supervisor_id
        if identity is None:
            return "-"
        name = self.supervisor(process)
        return display.link(self.admin_site, Process, identity, name)

    @admin.display(description=_("metadata"))
    def shown_metadata(self, process: Process) -> Any:
        return display.structure(process.metadata, openly=redaction.is_open(process))
