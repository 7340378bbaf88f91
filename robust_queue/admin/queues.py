"""Queues: how much waits in each, and the switches that pause and clear it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from robust_queue.compat import InvalidTask
from robust_queue.lifecycle.discard import clear_queue
from robust_queue.lifecycle.names import check_queue_name
from robust_queue.lifecycle.pause import pause, resume
from robust_queue.lifecycle.pause_task import resume_task
from robust_queue.lifecycle.queues import queue_in_full
from robust_queue.models import Job, Pause, TaskPause, Tuning

from . import queue_rows
from .acting import Patience
from .base import ReadOnlyAdmin, record
from .databases import database_of
from .display import plain
from .pages import PAGES, PageAdmin
from .permissions import may_look


class Button(NamedTuple):
    """What it does, and what is said if it did, or if someone was faster."""

    verb: Callable[..., bool]
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

# For how long a queue may be paused, in minutes; for ever comes first.
LENGTHS = {
    "": _("until resumed"),
    "15": _("for 15 minutes"),
    "60": _("for an hour"),
    "1440": _("for a day"),
}


class Queue(models.Model):
    """A name in the index of the admin; there is no such table."""

    name = models.CharField(primary_key=True, max_length=128)

    class Meta:
        app_label = "robust_queue"
        apps = PAGES
        managed = False
        verbose_name = _("queue")
        verbose_name_plural = _("queues")

    def __str__(self) -> str:
        return str(self.name)


@admin.register(Queue)
class QueueAdmin(PageAdmin):
    """One page. Who may view jobs sees it; buttons take a permission of their own."""

    title = _("Queues")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_look(request, Job)

    def facts(self, request: HttpRequest) -> dict[str, Any]:
        return {
            **queue_rows.facts(self.admin_site, request),
            "lengths": LENGTHS,
            "may_operate": self.has_pause_permission(request),
            "may_clear": self.has_discard_permission(request),
        }

    def press(self, request: HttpRequest) -> HttpResponse:
        if name := request.POST.get("clear"):
            return self._clear(request, name)
        if not self.has_pause_permission(request):
            raise PermissionDenied
        for label, button in BUTTONS.items():
            if name := request.POST.get(label):
                self._turn(request, name, button)
        return HttpResponseRedirect(request.get_full_path())

    def _clear(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask first, then do it for as long as a request may take."""
        if not self.has_discard_permission(request):
            raise PermissionDenied
        patience = Patience()
        try:
            check_queue_name(name)
            if "confirmed" not in request.POST:
                return self._ask(request, name)
            done = clear_queue(database_of(request), name, on_progress=patience)
        except InvalidTask as problem:
            self.message_user(request, str(problem), messages.ERROR)
        else:
            self._tell_of_clearing(request, name, done, patience)
        return HttpResponseRedirect(request.get_full_path())

    def _ask(self, request: HttpRequest, name: str) -> HttpResponse:
        status = queue_in_full(database_of(request), name)
        question = _("Discard everything that waits in queue “%s”?") % plain(name)
        context = {"queue": status, "back": request.get_full_path()}
        return self.page(request, "clear", question, context)

    def _tell_of_clearing(
        self, request: HttpRequest, name: str, done: int, patience: Patience
    ) -> None:
        words = ngettext("%d job discarded.", "%d jobs discarded.", done) % done
        record(request, [Pause(queue_name=name)], CHANGE, words)
        told = [gettext("Queue “%s”:") % plain(name), words]
        if patience.is_over:
            told.append(gettext("There was no time for more: do it again to go on."))
        level = messages.WARNING if patience.is_over else messages.SUCCESS
        self.message_user(request, " ".join(told), level)

    def _turn(self, request: HttpRequest, name: str, button: Button) -> None:
        given = {}
        if button.verb is pause and (length := request.POST.get("length")):
            # What the page does not offer is no length, and pauses nothing.
            if length not in LENGTHS:
                raise PermissionDenied
            given["until"] = timedelta(minutes=int(length))
        try:
            changed = button.verb(database_of(request), name, **given)
        except InvalidTask as problem:
            self.message_user(request, str(problem), messages.ERROR)
            return
        if changed:
            record(request, [Pause(queue_name=name)], button.flag)
        said: Any = button.done if changed else button.was_so
        self.message_user(request, said % plain(name))


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    """Which queues are paused, and since when."""

    list_display = ["queue_name", "created_at", "until"]
    name_lookups = ("queue_name",)
    search_help_text = _("The whole name of a queue.")
    ordering = ["queue_name"]
    fields = ["queue_name", "created_at", "until"]
    readonly_fields = ["created_at"]


@admin.register(TaskPause)
class TaskPauseAdmin(ReadOnlyAdmin):
    """Tasks of which no job is begun for now. They are resumed here as well."""

    actions = ("resume_selected",)
    list_display = ["task_path", "created_at", "until"]
    name_lookups = ("task_path",)
    search_help_text = _("The path of a task.")
    ordering = ["task_path"]

    @admin.action(description=_("Resume selected tasks"), permissions=["pause"])
    def resume_selected(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        paths = list(rows.values_list("pk", flat=True))
        database = database_of(request)
        done = [path for path in paths if resume_task(database, path)]
        record(request, [TaskPause(task_path=path) for path in done], DELETION)
        told = ngettext("%d task resumed.", "%d tasks resumed.", len(done))
        self.message_user(request, told % len(done))


@admin.register(Tuning)
class TuningAdmin(ReadOnlyAdmin):
    """What workers that run were asked to change."""

    list_display = ["process_id", "threads", "queues", "requested_at"]
    id_lookups = ("process_id",)
    search_help_text = _("The id of a process.")
    ordering = ["requested_at"]
