"""Failures: what has failed alike, and what is done to all of it at once."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.failures import (
    FailureGroup,
    Fingerprint,
    count_up_to,
    failures,
)
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.selection import KINDS
from robust_queue.models import FailedExecution
from robust_queue.models.attempts import KINDS as LABELS

from . import display
from .acting import DISCARD, RETRY, Deed, Patience, account_of, sum_up
from .base import REACH
from .databases import database_of
from .pages import PAGES, PageAdmin
from .permissions import may_look
from .redaction import sees_contents
from .requesting import AT_ONCE, ask_for

_LABELS: dict[str, Any] = dict(LABELS)
_WORDS = {kind.value: word for word, kind in KINDS.items()}


class Failures(models.Model):
    """A name in the index of the admin; there is no such table."""

    fingerprint = models.CharField(primary_key=True, max_length=255)

    class Meta:
        app_label = "robust_queue"
        apps = PAGES
        managed = False
        verbose_name = _("group of failures")
        verbose_name_plural = _("failures")

    def __str__(self) -> str:
        return str(self.fingerprint)


@admin.register(Failures)
class FailuresAdmin(PageAdmin):
    """Whoever may view, retry or discard failed executions may do so here."""

    title = _("Failures")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_look(request, FailedExecution)

    def facts(self, request: HttpRequest) -> dict[str, Any]:
        found = failures(database_of(request))
        return {
            "found": found,
            "rows": [self._row(group) for group in found.groups],
            "shows_messages": sees_contents(request),
            "may_retry": self.has_retry_permission(request),
            "may_discard": self.has_discard_permission(request),
        }

    def press(self, request: HttpRequest) -> HttpResponse:
        alike = _fingerprint_in(request)
        if "retry" in request.POST:
            return self._do(request, RETRY, alike, self.has_retry_permission(request))
        if "discard" not in request.POST:
            raise BadRequest("There is no such button.")
        may_discard = self.has_discard_permission(request)
        if may_discard and "confirmed" not in request.POST:
            return self._ask(request, alike)
        return self._do(request, DISCARD, alike, may_discard)

    def _do(
        self, request: HttpRequest, deed: Deed, alike: Fingerprint, is_allowed: bool
    ) -> HttpResponse:
        if not is_allowed:
            raise PermissionDenied
        database = database_of(request)
        if search := self._search(request, alike):
            return ask_for(request, deed.verb, search, self.admin_site)
        patience = Patience()
        tally = deed.matching(database, alike, on_progress=patience)
        sum_up(request, deed, FailedExecution, tally, _query(alike))
        level = messages.WARNING if patience.is_over else messages.SUCCESS
        self.message_user(request, account_of(deed, tally, patience), level)
        return HttpResponseRedirect(request.get_full_path())

    def _search(self, request: HttpRequest, alike: Fingerprint) -> JobSearch | None:
        """What finds the group, if that is too large to be waited for."""
        database, kind = database_of(request), _WORDS.get(alike.kind)
        # A kind that only a later version knows cannot be searched by.
        if kind is None or count_up_to(database, alike, AT_ONCE + 1) <= AT_ONCE:
            return None
        path, error = alike.task_path, alike.exception_class
        return JobSearch(state="failed", task=path, error=error, kind=kind)

    def _ask(self, request: HttpRequest, alike: Fingerprint) -> HttpResponse:
        number = count_up_to(database_of(request), alike, REACH)
        told = ngettext("%s job", "%s jobs", number)
        shown = (
            f"{number:,}" if number < REACH else gettext("%s or more") % f"{REACH:,}"
        )
        context = {
            "number": told % shown,
            "alike": alike,
            "task": display.path(alike.task_path),
            "exception": display.plain(alike.exception_class),
            "kind": _LABELS.get(alike.kind, alike.kind),
            "back": request.get_full_path(),
        }
        return self.page(request, "discard", _("Discard all that failed so?"), context)

    def _row(self, group: FailureGroup) -> dict[str, Any]:
        alike = group.fingerprint
        name = alike.exception_class.rpartition(".")[2] or "-"
        return {
            "group": group,
            "alike": alike,
            "task": display.path(alike.task_path),
            "exception": display.plain(name),
            "whole_exception": display.plain(alike.exception_class),
            "example": display.plain(group.example),
            "shapes": [(display.plain(shape), n) for shape, n in group.usual_messages],
            "kind": _LABELS.get(alike.kind, alike.kind),
            "url": display.list_url(self.admin_site, "failedexecution", _query(alike)),
        }


def _query(alike: Fingerprint) -> str:
    """The list of failed executions, filtered so that it has this group."""
    # Kinds that only a later version knows are no choice there.
    kind = _WORDS.get(alike.kind, "")
    asked = {"kind": kind, "exception": alike.exception_class, "q": alike.task_path}
    return urlencode({name: value for name, value in asked.items() if value})


def _fingerprint_in(request: HttpRequest) -> Fingerprint:
    """What the button was about. Whoever leaves a part out does not mean any."""
    try:
        told = [request.POST[name] for name in ("task", "exception", "kind")]
    except KeyError as error:
        raise BadRequest("A group is told by task, exception and kind.") from error
    if "\0" in "".join(told):
        raise BadRequest("No name has a null character.")
    path, exception, kind = told
    return Fingerprint(task_path=path, exception_class=exception, kind=kind)
