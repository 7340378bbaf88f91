"""The record of a job as it is stored, as far as whoever looks may see it."""

import json
from collections.abc import Callable
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from robust_queue.arguments import plain_call, plain_result
from robust_queue.lifecycle.redact import UNREDACTABLE, redacted_call, redacted_value
from robust_queue.models import Job

from . import display, redaction
from .jobs_list import execution_of

# Left out for those who may not see what jobs are called with, return and raise.
CONTENTS = frozenset({"arguments", "metadata", "result", "message", "traceback"})
# Whoever knows the token of a claim could settle it.
SECRETS = frozenset({"token"})


def record(job: Job) -> SafeString:
    """The job and the row that tells where it stands, as JSON."""
    row = execution_of(job)
    facts = {"job": _facts(job, job), job.state: _facts(row, job) if row else None}
    text = json.dumps(facts, cls=DjangoJSONEncoder, indent=2, ensure_ascii=False)
    return format_html(
        "<details><summary>{}</summary>{}</details>",
        _("as it is stored"),
        display.block(text),
    )


def _facts(row: Model, job: Job) -> dict[str, Any]:
    hidden = SECRETS if getattr(job, "is_shown", False) else SECRETS | CONTENTS
    names = [each.attname for each in row._meta.concrete_fields]
    return {
        name: _shown(name, getattr(row, name), job)
        for name in names
        if name not in hidden
    }


def _shown(name: str, value: Any, job: Job) -> Any:
    reads = _READERS.get(name)
    if reads is None or not value:
        return value
    try:
        # A hook may return anything, also what cannot be written.
        return json.loads(json.dumps(reads(value, job)))
    except UNREDACTABLE:
        # What cannot be read may have secrets in it.
        return value if redaction.is_open(job) else _("(could not be redacted)")


def _call(text: str, job: Job) -> dict[str, Any]:
    args, kwargs = plain_call(text)
    if not redaction.is_open(job):
        args, kwargs = redacted_call(job.task_path, args, kwargs)
    return {"args": args, "kwargs": kwargs}


def _value(read: Callable[[str], Any]) -> Callable[[str, Job], Any]:
    def reads(text: str, job: Job) -> Any:
        value = read(text)
        return value if redaction.is_open(job) else redacted_value(value)

    return reads


_READERS: dict[str, Callable[[str, Job], Any]] = {
    "arguments": _call,
    "metadata": _value(json.loads),
    "result": _value(plain_result),
}
