"""What is done to jobs that somebody names, whatever state they are in."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest
from django.utils.translation import gettext as _

from robust_queue.lifecycle.operations import VERBS
from robust_queue.lifecycle.search import id_in
from robust_queue.lifecycle.selection import Filter, Tally, standing
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
}

# So many jobs that were passed over are named one by one.
NAMED = 10


class Outcome(NamedTuple):
    """How it went, and which jobs were in no state for it."""

    tally: Tally
    left: dict[UUID, str]


def verbs_for(request: HttpRequest, state: str) -> list[str]:
    """What this user may do to jobs of that state; without one, to any."""
    return [
        verb
        for verb, (states, _change) in VERBS.items()
        if (not state or state in states) and may(request, verb)
    ]


def may(request: HttpRequest, verb: str) -> bool:
    """May this user do that to jobs?"""
    return permissions.may_do(request, PERMISSIONS[verb])


def ticked(request: HttpRequest, database: str) -> list[Job]:
    """The jobs that were ticked, also those that the list has no more by now."""
    given = map(id_in, request.POST.getlist(ACTION_CHECKBOX_NAME))
    ids = list(dict.fromkeys(each for each in given if each))
    jobs = Job.objects.using(database).filter(pk__in=ids)
    paths = dict(jobs.values_list("pk", "task_path"))
    return [Job(id=each, task_path=paths.get(each, "")) for each in ids]


def do_to(database: str, verb: str, ids: Sequence[UUID]) -> Outcome:
    """Do it to those of the jobs that are in a state for it."""
    found, tally = standing(database, ids), Tally()
    states, change = VERBS[verb]
    for state in (each for each in states if each in found.values()):
        tally += change(database, Filter(state=state, ids=ids))
    left = {
        each: found.get(each, "gone") for each in ids if found.get(each) not in states
    }
    return Outcome(tally, left)


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
