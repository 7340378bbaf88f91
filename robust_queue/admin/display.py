"""How values are shown: links between rows, text that keeps its lines, states."""

import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from robust_queue.arguments import plain_call, plain_result
from robust_queue.exceptions import DeserializationError
from robust_queue.lifecycle.why import Reason
from robust_queue.models import Job, Process, Semaphore, TaskPause

BREAKABLE_DOT = SafeString(".<wbr>")

# A megabyte of arguments would make a page that no browser likes.
SHOWN_LENGTH = 100_000

STATES = {
    "ready": _("ready"),
    "scheduled": _("scheduled"),
    "blocked": _("blocked"),
    "claimed": _("claimed"),
    "failed": _("failed"),
    "finished": _("finished"),
    "lost": _("lost"),
}


def link(site: AdminSite, model: type[Model], pk: Any, text: object) -> SafeString:
    """A link to the page of a row, whether or not the row is still there.

    On a site that has no pages for the model it is the text alone.
    """
    name = f"{model._meta.app_label}_{model._meta.model_name}_change"
    try:
        url = reverse(f"admin:{name}", args=[quote(pk)], current_app=site.name)
    except NoReverseMatch:
        return format_html("{}", text)
    return format_html('<a href="{}">{}</a>', url, text)


# What a reason may be about, and the model whose page tells more of it.
SUBJECTS: dict[str, type[Model]] = {
    "job": Job,
    "process": Process,
    "task": TaskPause,
    "key": Semaphore,
}


def reason(site: AdminSite, told: Reason) -> SafeString:
    """A sentence, and the way to what it is about."""
    text = format_html("{}", told.text)
    if told.subject == "queue":
        return list_link(site, "queue", text)
    model = SUBJECTS.get(told.subject)
    return link(site, model, told.name, text) if model else text


def list_link(site: AdminSite, model_name: str, text: object) -> SafeString:
    """A link to a list, or the text alone on a site that does not have it."""
    try:
        name = f"admin:robust_queue_{model_name}_changelist"
        url = reverse(name, current_app=site.name)
    except NoReverseMatch:
        return format_html("{}", text)
    return format_html('<a href="{}">{}</a>', url, text)


def sentences(items: Iterable[SafeString]) -> SafeString:
    """One under the other."""
    lines = format_html_join("", "<li>{}</li>", ((each,) for each in items))
    return format_html('<ul class="rqueue-reasons">{}</ul>', lines)


def path(dotted: str) -> SafeString:
    """A dotted path, which may be broken behind its dots where a column is narrow."""
    parts = ((part,) for part in dotted.split("."))
    return format_html_join(BREAKABLE_DOT, "{}", parts)


def block(text: str) -> SafeString | str:
    """Text with its lines and indentation as they were written."""
    if not text:
        return "-"
    left_out = len(text) - SHOWN_LENGTH
    if left_out > 0:
        rest = ngettext(
            "… %(count)d more character", "… %(count)d more characters", left_out
        )
        text = f"{text[:SHOWN_LENGTH]}\n{rest % {'count': left_out}}"
    return format_html('<pre class="rqueue-text">{}</pre>', text)


def arguments(text: str) -> SafeString | str:
    """The stored arguments of a call."""
    return block(_readable(text, _call))


def result(text: str) -> SafeString | str:
    """A stored return value."""
    return block(_readable(text, plain_result))


def structure(text: str) -> SafeString | str:
    """Any stored JSON."""
    return block(_readable(text, json.loads))


def duration(length: timedelta) -> str:
    """A length of time in the largest unit that says enough."""
    seconds = int(length.total_seconds())
    if seconds < MINUTE:
        return _said(
            ngettext("%(count)d second", "%(count)d seconds", seconds), seconds
        )
    if seconds < 2 * HOUR:
        count = seconds // MINUTE
        return _said(ngettext("%(count)d minute", "%(count)d minutes", count), count)
    if seconds < 2 * DAY:
        count = seconds // HOUR
        return _said(ngettext("%(count)d hour", "%(count)d hours", count), count)
    count = seconds // DAY
    return _said(ngettext("%(count)d day", "%(count)d days", count), count)


MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def _said(message: str, count: int) -> str:
    return message % {"count": count}


def _call(text: str) -> dict[str, Any]:
    args, kwargs = plain_call(text)
    shown = {"args": args, "kwargs": kwargs}
    return {name: values for name, values in shown.items() if values}


def _readable(text: str, read: Callable[[str], Any]) -> str:
    if not text:
        return ""
    try:
        return json.dumps(read(text), indent=2, ensure_ascii=False)
    except (DeserializationError, ValueError, RecursionError):
        return text
