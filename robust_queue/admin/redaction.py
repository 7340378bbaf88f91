"""Who sees arguments, results and errors; who sees them as they are, who redacted.

Methods that show a column are told the row alone, so the row has to know. Of one that
nobody has asked about nothing is shown.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.redact import is_redacted

from .permissions import ARGUMENTS, REDACTED, may_see

HIDDEN = _("(takes the permission “Can view arguments, results and errors”)")

REFUSAL = _(
    "Some of its arguments are redacted. Only who may see them can change them: that "
    "takes the permission “Can view arguments that are redacted”."
)


def sees_contents(request: HttpRequest) -> bool:
    """May this user see what jobs are called with, return and raise?"""
    return may_see(request, ARGUMENTS) or sees_all(request)


def sees_all(request: HttpRequest) -> bool:
    """May this user see arguments that are redacted for others?"""
    return may_see(request, REDACTED)


def mark(request: HttpRequest, row: Any) -> None:
    """Let a row know who looks at it."""
    row.is_shown_openly = sees_all(request)
    row.is_shown = sees_contents(request)


def is_open(row: Any) -> bool:
    """Was the row found for somebody who may see all of it?"""
    return getattr(row, "is_shown_openly", False)


def concealed(show: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Of a method that shows a column: only for those who may see contents."""

    @wraps(show)
    def show_or_not(self: Any, row: Any) -> Any:
        return show(self, row) if getattr(row, "is_shown", False) else HIDDEN

    return show_or_not


def is_closed(request: HttpRequest, row: Any) -> bool:
    """Would a form show, or overwrite, what this user may not see?

    The row is a job, or a recurring task.
    """
    if sees_all(request):
        return False
    return not sees_contents(request) or is_redacted(row.task_path, row.arguments)
