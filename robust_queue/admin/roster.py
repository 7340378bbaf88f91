"""The process tree: supervisors, those that they have started, and what these do."""

from typing import Any

from django.apps.registry import Apps
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.roster import Household, Member, roster
from robust_queue.models import ClaimedExecution, Job, Process

from . import display
from .databases import database_of
from .pages import PageAdmin
from .permissions import may_look

KINDS = {
    "Supervisor": _("supervisor"),
    "Worker": _("worker"),
    "Dispatcher": _("dispatcher"),
    "Scheduler": _("scheduler"),
}


class ProcessTree(models.Model):
    """A name in the index of the admin; there is no such table."""

    name = models.CharField(primary_key=True, max_length=128)

    class Meta:
        app_label = "robust_queue"
        apps = Apps()
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

    def facts(self, request: HttpRequest) -> dict[str, Any]:
        found = roster(database_of(request))
        return {
            "found": found,
            "households": [self._household(each) for each in found.households],
            "orphans": [self._row(each) for each in found.orphans],
            "names_jobs": may_look(request, ClaimedExecution),
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
            "heard": display.duration(member.silent_for),
            "tuned": _tuned(member),
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


def _tuned(member: Member) -> str:
    """What somebody has changed while it ran."""
    names = {"threads": gettext("threads"), "queues": gettext("queues")}
    told = member.worker.tuned if member.worker else {}
    return ", ".join(names[name] for name in names if name in told)
