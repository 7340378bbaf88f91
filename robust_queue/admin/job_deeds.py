"""What is done to jobs that somebody names, whatever state they are in."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest
from django.utils.translation import gettext as _

from robust_queue.lifecycle.deeds import VERBS, Outcome, do_to
from robust_queue.lifecycle.search_conditions import id_in
from robust_queue.lifecycle.selection import states_within
from robust_queue.models import Job

from . import permissions
from .acting import CANCEL, DISCARD, RETRY, RUN_NOW, Deed, Patience, account_of
from .base import record
from .tabs import LABELS

DEEDS = {deed.verb: deed for deed in (RETRY, DISCARD, CANCEL, RUN_NOW)}

PERMISSIONS = {
    "retry": permissions.RETRY,
    "discard": permissions.DISCARD,
    "cancel": permissions.CANCEL,
    "run_now": permissions.RUN,
    "clear": permissions.DISCARD,
}

# So many jobs that were passed over are named one by one.
NAMED = 10


def verbs_for(request: HttpRequest, state: str) -> list[str]:
    """What this user may do to jobs of that state; without one, to any."""
    return [verb for verb in DEEDS if _fits(verb, state) and may(request, verb)]


def _fits(verb: str, state: str) -> bool:
    states = VERBS[verb].states
    return not state or any(each in states for each in states_within(state))


def may(request: HttpRequest, verb: str) -> bool:
    """May this user do that to jobs?"""
    # One that only a later version knows is not done by anybody here.
    codename = PERMISSIONS.get(verb)
    return codename is not None and permissions.may_do(request, codename)


def ticked(request: HttpRequest, database: str) -> list[Job]:
    """The jobs that were ticked, also those that the list has no more by now."""
    given = map(id_in, request.POST.getlist(ACTION_CHECKBOX_NAME))
    ids = list(dict.fromkeys(each for each in given if each))
    jobs = Job.objects.using(database).filter(pk__in=ids)
    paths = dict(jobs.values_list("pk", "task_path"))
    return [Job(id=each, task_path=paths.get(each, "")) for each in ids]


def do_and_tell(
    request: HttpRequest, database: str, verb: str, jobs: Sequence[Job]
) -> Outcome:
    """Do it, say how it went, and write down who did it."""
    outcome = do_to(database, verb, [job.pk for job in jobs])
    deed = DEEDS[verb]
    met = [job for job in jobs if job.pk not in outcome.left]
    if outcome.tally.done:
        record(request, met, deed.flag, str(deed.note))
    _tell(request, deed, outcome)
    return outcome


def _tell(request: HttpRequest, deed: Deed, outcome: Outcome) -> None:
    said = [account_of(deed, outcome.tally, Patience())]
    named = list(outcome.left.items())
    said += [
        _("Job %(id)s is %(state)s: nothing was done to it.")
        % {"id": job_id, "state": word_for(state)}
        for job_id, state in named[:NAMED]
    ]
    if len(named) > NAMED:
        said.append(_("Likewise %d others.") % (len(named) - NAMED))
    is_all = outcome.tally.done and not outcome.left and not outcome.tally.passed_over
    level = messages.SUCCESS if is_all else messages.WARNING
    messages.add_message(request, level, " ".join(said))


def word_for(state: str) -> Any:
    """A state as people say it; of a job that is gone, that."""
    return LABELS.get(state) or _(state)
