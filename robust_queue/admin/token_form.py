"""The form of a new token. Nobody hands out more than they may do themselves."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from robust_queue.lifecycle.moments import as_stored
from robust_queue.lifecycle.tokens import token_name_problem, token_rate_problem
from robust_queue.models import ApiToken
from robust_queue.scopes import KNOWN, ScopeError, Scopes

from . import permissions
from .databases import database_of

_LOOK = ("view_job", "view_process", "view_claimedexecution", "view_recurringtask")
_SEE_ALL = (permissions.ARGUMENTS, permissions.REDACTED)
_ENQUEUE = "add_job"
# By the kind of a scope, the permissions of whoever may do all that it opens.
COVER = {
    "read": _LOOK,
    "read_arguments": (*_LOOK, *_SEE_ALL),
    "operate": (
        # A job is replaced by another one with the same arguments, seen or not.
        *("view_job", "view_recurringtask", *_SEE_ALL),
        permissions.RETRY,
        permissions.DISCARD,
        permissions.CANCEL,
        permissions.RUN,
        permissions.PAUSE,
        permissions.MANAGE,
        "add_recurringtask",
        "change_recurringtask",
        "delete_recurringtask",
    ),
    "enqueue": (_ENQUEUE,),
    # A worker is handed the arguments of its jobs as they are.
    "work": (_ENQUEUE, *_SEE_ALL),
}


class TokenForm(forms.ModelForm):  # type: ignore[type-arg]
    """What is said of a token when it is made. Later nothing of it can be changed."""

    request: HttpRequest  # told by whoever makes a class of this one for a request

    class Meta:
        model = ApiToken
        fields = ["name", "scopes", "expires_at", "requests_per_minute"]
        widgets = {
            "scopes": AdminTextareaWidget(attrs={"rows": 5, "spellcheck": "false"})
        }
        help_texts = {
            "scopes": gettext_lazy(
                "One per line: read, read_arguments, operate, enqueue:TASK or "
                "work:QUEUE. A name may end in *."
            )
        }

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if problem := token_name_problem(name):
            raise ValidationError(problem)
        rows = ApiToken.objects.using(database_of(self.request)).filter(name=name)
        # Also where a page that shows a new one is loaded again.
        if any(token.is_valid for token in rows):
            raise ValidationError(_("There is a token of that name already."))
        return name

    def clean_scopes(self) -> str:
        try:
            scopes = Scopes.read(self.cleaned_data["scopes"])
        except ScopeError as refusal:
            raise ValidationError(str(refusal)) from refusal
        if not scopes.texts:
            raise ValidationError(KNOWN)
        if refusals := [*_beyond(self.request, scopes)]:
            raise ValidationError(refusals)
        return str(scopes)

    def clean_expires_at(self) -> Any:
        moment: datetime | None = self.cleaned_data["expires_at"]
        if moment is not None and not _is_ahead(moment):
            raise ValidationError(_("Choose a moment in the future."))
        return moment

    def clean_requests_per_minute(self) -> int | None:
        number: int | None = self.cleaned_data["requests_per_minute"]
        # Columns of SQLite take more than those of others, and so do forms.
        if problem := token_rate_problem(number):
            raise ValidationError(problem)
        return number


def _beyond(request: HttpRequest, scopes: Scopes) -> Iterator[str]:
    """What of these is more than this user may do, as sentences."""
    for kind in dict.fromkeys(text.partition(":")[0] for text in scopes.texts):
        lacking = [it for it in COVER[kind] if not permissions.may_see(request, it)]
        if lacking:
            names = ", ".join(f"robust_queue.{each}" for each in lacking)
            told = _("You may not hand out “%(kind)s”: it takes %(names)s.")
            yield told % {"kind": kind, "names": names}


def _is_ahead(moment: datetime) -> bool:
    try:
        return as_stored(moment) > timezone.now()
    except OverflowError:
        return False
