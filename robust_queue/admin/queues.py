"""Queues: how much waits in each, and the switch that pauses it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.apps.registry import Apps
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, DELETION
from django.core.exceptions import PermissionDenied
from django.db import models, router
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from robust_queue.compat import InvalidTask
from robust_queue.lifecycle.pause import pause, resume
from robust_queue.lifecycle.queues import QueueStatus, queues
from robust_queue.models import Job, Pause

from . import display
from .base import ReadOnlyAdmin, may, record


class Button(NamedTuple):
    """What it does, and what is said if it did, or if someone was faster."""

    verb: Callable[[str, str], bool]
    flag: int  # what becomes of the row of the pause
    done: Promise
    was_so: Promise


BUTTONS = {
    "pause": Button(
        pause,
        ADDITION,
        _("Queue “%s” is paused."),
        _("Queue “%s” was paused already."),
    ),
    "resume": Button(
        resume,
        DELETION,
        _("Queue “%s” gives out work again."),
        _("Queue “%s” was not paused."),
    ),
}


class Queue(models.Model):
    """A name in the index of the admin; there is no such table.

    Kept in a registry of its own, so that neither migrations nor ``dumpdata`` nor
    content types ever hear of it.
    """

    name = models.CharField(primary_key=True, max_length=128)

    class Meta:
        app_label = "robust_queue"
        apps = Apps()
        managed = False
        verbose_name = _("queue")
        verbose_name_plural = _("queues")

    def __str__(self) -> str:
        return str(self.name)


@admin.register(Queue)
class QueueAdmin(ReadOnlyAdmin):
    """One page. Who may view pauses sees it; who may change them has the buttons."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may(request, "view", Pause) or may(request, "change", Pause)

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return may(request, "change", Pause)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.changelist_view)
        return [path("", view, name="robust_queue_queue_changelist")]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._press(request)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Queues"),
            "opts": self.opts,
            "media": self.media,
            "rows": [_row(status) for status in queues(router.db_for_read(Job))],
            "may_operate": self.has_operate_permission(request),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request, "admin/robust_queue/queue/change_list.html", context
        )

    def _press(self, request: HttpRequest) -> HttpResponse:
        if not self.has_operate_permission(request):
            raise PermissionDenied
        for label, button in BUTTONS.items():
            if name := request.POST.get(label):
                self._turn(request, name, button)
        return HttpResponseRedirect(request.get_full_path())

    def _turn(self, request: HttpRequest, name: str, button: Button) -> None:
        try:
            changed = button.verb(router.db_for_write(Pause), name)
        except InvalidTask as problem:
            self.message_user(request, str(problem), messages.ERROR)
            return
        if changed:
            record(request, [Pause(queue_name=name)], button.flag)
        said: Any = button.done if changed else button.was_so
        self.message_user(request, said % name)


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    """Which queues are paused, and since when."""

    list_display = ["queue_name", "created_at"]
    name_lookups = ("queue_name",)
    search_help_text = _("The whole name of a queue.")
    ordering = ["queue_name"]
    fields = ["queue_name", "created_at"]
    readonly_fields = ["created_at"]


def _row(status: QueueStatus) -> dict[str, Any]:
    latency = display.duration(status.latency) if status.ready else ""
    return {"queue": status, "latency": latency}
