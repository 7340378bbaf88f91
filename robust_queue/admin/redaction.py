"""Who sees arguments as they are, and who sees them redacted.

Methods that show a column are told the row alone, so the row has to know. One that
nobody has asked about is shown redacted.
"""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from robust_queue.lifecycle.redact import is_redacted

PERMISSION = "robust_queue.view_unredacted_arguments"

REFUSAL = _(
    "Some of its arguments are redacted. Only who may see them can change them: that "
    "takes the permission “Can view arguments that are redacted”."
)


def sees_all(request: HttpRequest) -> bool:
    """May this user see arguments that are redacted for others?"""
    return request.user.has_perm(PERMISSION)


def mark(request: HttpRequest, row: Any) -> None:
    """Let a row know who looks at it."""
    row.is_shown_openly = sees_all(request)


def is_open(row: Any) -> bool:
    """Was the row found for somebody who may see all of it?"""
    return getattr(row, "is_shown_openly", False)


def is_closed(request: HttpRequest, row: Any) -> bool:
    """Would a form show, or overwrite, what this user may not see?

    The row is a job, or a recurring task.
    """
    return not sees_all(request) and is_redacted(row.task_path, row.arguments)
