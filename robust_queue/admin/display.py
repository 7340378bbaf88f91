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
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from robust_queue.arguments import plain_call, plain_result
from robust_queue.lifecycle.redact import (
    UNREDACTABLE,
    is_on,
    redacted_call,
    redacted_value,
)
from robust_queue.lifecycle.why import Reason
from robust_queue.models import Job, Process, Semaphore, TaskPause

BREAKABLE_DOT = SafeString(".<wbr>")

# Marks that change the direction of what follows, and what is shown in their place.
TURNING = dict.fromkeys(
    [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"
)

# Parts of a path that are enough in a list.
NEAR = 3

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
    url = list_url(site, model_name)
    if not url:
        return format_html("{}", text)
    return format_html('<a href="{}">{}</a>', url, text)


def list_url(site: AdminSite, model_name: str, query: str = "") -> str:
    """The address of a list, filtered so; nothing on a site that does not have it."""
    name = f"admin:robust_queue_{model_name}_changelist"
    try:
        url = reverse(name, current_app=site.name)
    except NoReverseMatch:
        return ""
    return f"{url}?{query}" if query else url


def sentences(items: Iterable[SafeString]) -> SafeString:
    """One under the other."""
    lines = format_html_join("", "<li>{}</li>", ((each,) for each in items))
    return format_html('<ul class="rqueue-reasons">{}</ul>', lines)


def plain(text: str) -> str:
    """Text without the marks that turn it around: what is seen is what is there."""
    return text.translate(TURNING)


def path(dotted: str) -> SafeString:
    """A dotted path, which may be broken behind its dots where a column is narrow."""
    parts = ((part,) for part in plain(dotted).split("."))
    return format_html_join(BREAKABLE_DOT, "{}", parts)


def near_path(dotted: str) -> SafeString:
    """The end of a dotted path, which tells it from others; all of it on demand."""
    text = plain(dotted)
    near = path(".".join(text.split(".")[-NEAR:]))
    return format_html('<span title="{}">{}</span>', text, near)


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
    # To be reached by keyboard: it scrolls.
    return format_html(
        '<pre class="rqueue-text" tabindex="0">{}</pre>', _sendable(text)
    )


def _sendable(text: str) -> str:
    """JSON may escape half a pair of surrogates, which no page can be encoded with."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def arguments(text: str, task_path: str, *, openly: bool = False) -> SafeString | str:
    """The stored arguments of a call, redacted unless they are shown openly."""
    return block(_readable(text, lambda text: _call(text, task_path, openly), openly))


def result(text: str, *, openly: bool = False) -> SafeString | str:
    """A stored return value, redacted likewise."""
    return block(_readable(text, _value(plain_result, openly), openly))


def structure(text: str, *, openly: bool = False) -> SafeString | str:
    """Any stored JSON, redacted likewise."""
    return block(_readable(text, _value(json.loads, openly), openly))


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


def _call(text: str, task_path: str, openly: bool) -> dict[str, Any]:
    args, kwargs = plain_call(text)
    if not openly:
        args, kwargs = redacted_call(task_path, args, kwargs)
    shown = {"args": args, "kwargs": kwargs}
    return {name: values for name, values in shown.items() if values}


def _value(read: Callable[[str], Any], openly: bool) -> Callable[[str], Any]:
    return read if openly else lambda text: redacted_value(read(text))


def _readable(text: str, read: Callable[[str], Any], openly: bool) -> str:
    if not text:
        return ""
    try:
        return json.dumps(read(text), indent=2, ensure_ascii=False)
    except UNREDACTABLE:
        # What cannot be read may have secrets in it, and nobody would find them.
        return text if openly or not is_on() else gettext("(could not be redacted)")
