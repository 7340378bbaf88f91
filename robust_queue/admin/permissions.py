"""Who may do what. Every page asks here, and every button asks again when pressed."""

from django.contrib.auth import get_permission_codename
from django.db.models import Model
from django.http import HttpRequest

from robust_queue.configuration import current
from robust_queue.models import Job

# What else than to look somebody may be allowed to do.
RETRY = "retry_job"
DISCARD = "discard_job"
CANCEL = "cancel_job"
RUN = "run_job"
PAUSE = "pause_queue"
MANAGE = "manage_process"
# And what not everybody who looks may see.
ARGUMENTS = "view_arguments"
REDACTED = "view_unredacted_arguments"


def may_look(request: HttpRequest, model: type[Model]) -> bool:
    """Does the admin show rows of this model to this user?"""
    return _has(request, "view", model) or _has(request, "change", model)


def may_see(request: HttpRequest, codename: str) -> bool:
    """Is this part of a page for the eyes of this user?"""
    return request.user.has_perm(f"robust_queue.{codename}")


def may_do(request: HttpRequest, codename: str) -> bool:
    """May this user do that? Nobody may if the admin is for reading only."""
    return not is_read_only() and may_see(request, codename)


def may_edit(request: HttpRequest, action: str, model: type[Model]) -> bool:
    """May this user add, change or delete such rows, in a form of the admin?"""
    return not is_read_only() and _has(request, action, model)


def may_rerun(request: HttpRequest, *, replaces: bool) -> bool:
    """May this user have a job run as a new one, in its place or beside it?"""
    if replaces:
        return may_do(request, RETRY) and may_do(request, DISCARD)
    return may_edit(request, "add", Job)


def is_read_only() -> bool:
    """Do the settings say that the admin is for reading only?"""
    return current().admin_read_only


def _has(request: HttpRequest, action: str, model: type[Model]) -> bool:
    codename = get_permission_codename(action, model._meta)
    return request.user.has_perm(f"{model._meta.app_label}.{codename}")
