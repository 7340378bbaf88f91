"""Concurrency keys: who has a slot, and who waits for one."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.keys import KeyStatus, key_statuses
from robust_queue.models import ClaimedExecution, Job, Semaphore

from . import display
from .base import LeanChangeList, ReadOnlyAdmin
from .permissions import may_look


class KeyList(LeanChangeList):
    """Finds out about all keys of a page at once."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list: Any = list(self.result_list)
        found = key_statuses(self.root_queryset.db, self.result_list)
        names_jobs = may_look(request, ClaimedExecution)
        for each in self.result_list:
            each.status, each.names_jobs = found[each.key], names_jobs


@admin.register(Semaphore)
class SemaphoreAdmin(ReadOnlyAdmin):
    """The slots of each concurrency key."""

    is_in_index = True
    list_display = [
        "shown_key",
        "slots",
        "blocked",
        "holders",
        "oldest_blocked",
        "expires_at",
    ]
    name_lookups = ("key",)
    search_help_text = _("The whole key.")
    ordering = ["key"]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeyList]:
        return KeyList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        titled = {"title": _("Concurrency keys"), **(extra_context or {})}
        return super().changelist_view(request, titled)

    @admin.display(description=_("key"))
    def shown_key(self, semaphore: Semaphore) -> SafeString:
        return format_html("<bdi>{}</bdi>", display.plain(semaphore.key))

    @admin.display(description=_("free slots"))
    def slots(self, semaphore: Semaphore) -> str:
        numbers = {"free": semaphore.value, "limit": semaphore.limit}
        return gettext("%(free)d of %(limit)d") % numbers

    @admin.display(description=_("held by"))
    def holders(self, semaphore: Any) -> SafeString | str:
        status: KeyStatus = semaphore.status
        if not semaphore.names_jobs:
            return _number_of_jobs(status.taken)
        links = [
            display.link(
                self.admin_site, Job, each.job_id, display.path(each.task_path)
            )
            for each in status.holders
        ]
        others = _others(status) if status.others else ""
        told = [each for each in (*links, others) if each]
        if not told:
            return "-"
        lines = format_html_join("", "<li><bdi>{}</bdi></li>", ((it,) for it in told))
        return format_html('<ul class="rqueue-reasons">{}</ul>', lines)

    @admin.display(description=_("blocked"))
    def blocked(self, semaphore: Any) -> SafeString | str:
        waiting = semaphore.status.waiting
        if not waiting.count:
            return "-"
        count = f"{waiting.count:,}"
        shown = gettext("%s or more") % count if waiting.is_cut else count
        query = urlencode({"key": semaphore.key})
        url = display.list_url(self.admin_site, "blockedexecution", query)
        return format_html('<a href="{}">{}</a>', url, shown) if url else shown

    @admin.display(description=_("oldest blocked since"), empty_value="-")
    def oldest_blocked(self, semaphore: Any) -> Any:
        return semaphore.status.waiting.oldest_at


def _others(status: KeyStatus) -> str:
    """Those that are ready have their slots already."""
    if not status.holders:
        return _number_of_jobs(status.taken)
    told = ngettext("and %d other", "and %d others", status.others)
    return told % status.others


def _number_of_jobs(count: int) -> str:
    return ngettext("%d job", "%d jobs", count) % count if count > 0 else "-"
