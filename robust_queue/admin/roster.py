"""The process tree: supervisors, those that they have started, and what these do."""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from robust_queue.exceptions import TuningError
from robust_queue.lifecycle.quiet import (
    process_named,
    quiet_process,
    stop_process,
    wake_process,
)
from robust_queue.lifecycle.roster import Household, Member, roster
from robust_queue.models import ClaimedExecution, Job, Process
from robust_queue.models.processes import EXTERNAL

from . import display
from .base import record
from .databases import database_of
from .pages import PAGES, PageAdmin
from .permissions import may_look
from .processes import memory_of

KINDS = {
    "Supervisor": _("supervisor"),
    "Worker": _("worker"),
    "Dispatcher": _("dispatcher"),
    "Scheduler": _("scheduler"),
}


class Button(NamedTuple):
    """What it asks of a process, and what is said of a worker and of a supervisor."""

    verb: Callable[[str, UUID | str], Process]
    said: Promise
    said_of_all: Promise
    # Of a worker outside, if something else is true of it.
    said_outside: Promise | None = None

    def said_of(self, process: Process) -> Any:
        if process.kind == "Supervisor":
            return self.said_of_all
        if process.kind == EXTERNAL and self.said_outside is not None:
            return self.said_outside
        return self.said


BUTTONS = {
    "quiet": Button(
        quiet_process,
        _("%s is asked to take nothing new."),
        _("All workers of %s are asked to take nothing new."),
    ),
    "wake": Button(
        wake_process,
        _("%s is asked to go on."),
        _("All workers of %s are asked to go on."),
    ),
    "stop": Button(
        stop_process,
        _("%s is asked to end when what it runs is over. It is replaced first."),
        _("%s is asked to stop, with all that it has started."),
        _("%s is asked to end when what it runs is over. Nobody replaces it."),
    ),
}


class ProcessTree(models.Model):
    """A name in the index of the admin; there is no such table."""

    name = models.CharField(primary_key=True, max_length=128)

    class Meta:
        app_label = "robust_queue"
        apps = PAGES
        managed = False
        verbose_name = _("process tree")
        verbose_name_plural = _("process tree")

    def __str__(self) -> str:
        return str(self.name)


@admin.register(ProcessTree)
class ProcessTreeAdmin(PageAdmin):
    """Whoever may view processes sees it; what they run, who may view claims."""

    title = _("Process tree")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_look(request, Process)

    def press(self, request: HttpRequest) -> HttpResponse:
        if not self.has_manage_permission(request):
            raise PermissionDenied
        for label, button in BUTTONS.items():
            if label in request.POST:
                return self._press(request, label, button)
        raise PermissionDenied

    def _press(self, request: HttpRequest, label: str, button: Button) -> HttpResponse:
        try:
            found = process_named(database_of(request), request.POST[label])
            is_chief = found.kind == "Supervisor"
            if label == "stop" and is_chief and "confirmed" not in request.POST:
                return self._ask(request, found)
            button.verb(database_of(request), found.pk)
        except TuningError as problem:
            self.message_user(request, display.plain(str(problem)), messages.ERROR)
        else:
            said = button.said_of(found)
            record(request, [found], CHANGE, said % found.name)
            self.message_user(request, said % display.plain(found.name))
        return HttpResponseRedirect(request.get_full_path())

    def _ask(self, request: HttpRequest, supervisor: Process) -> HttpResponse:
        name = display.plain(supervisor.name)
        question = _("Stop %s and all that it has started?") % name
        context = {"supervisor": supervisor, "back": request.get_full_path()}
        return self.page(request, "stop", question, context)

    def facts(self, request: HttpRequest) -> dict[str, Any]:
        found = roster(database_of(request))
        return {
            "found": found,
            "households": [self._household(each) for each in found.households],
            "orphans": [self._row(each) for each in found.orphans],
            "outsiders": [self._row(each) for each in found.outsiders],
            "names_jobs": may_look(request, ClaimedExecution),
            "may_manage": self.has_manage_permission(request),
        }

    def _household(self, household: Household) -> dict[str, Any]:
        return {
            "supervisor": self._row(household.supervisor),
            "rows": [self._row(each) for each in household.members],
        }

    def _row(self, member: Member) -> dict[str, Any]:
        process = member.process
        return {
            "member": member,
            "process": process,
            "link": display.link(
                self.admin_site, Process, process.pk, display.plain(process.name)
            ),
            "kind": KINDS.get(process.kind, process.kind),
            "host": display.plain(process.hostname),
            "queues": [display.plain(each) for each in _queues(member)],
            "memory": memory_of(process),
            "heard": display.duration(member.silent_for),
            "tuned": _tuned(member),
            "version": display.plain(_version(member)),
            "runs": [
                {
                    "link": display.link(
                        self.admin_site, Job, run.job_id, display.path(run.task_path)
                    ),
                    "lasts": display.duration(run.lasts),
                }
                for run in member.runs
            ],
        }


def _queues(member: Member) -> tuple[str, ...]:
    return member.worker.queues if member.worker else ()


def _version(member: Member) -> str:
    """What a worker outside has said of itself."""
    return member.worker.version if member.worker else ""


def _tuned(member: Member) -> str:
    """What somebody has changed while it ran."""
    names = {"threads": gettext("threads"), "queues": gettext("queues")}
    told = member.worker.tuned if member.worker else {}
    return ", ".join(names[name] for name in names if name in told)
