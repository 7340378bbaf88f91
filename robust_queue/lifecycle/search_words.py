"""Searches for jobs in words: what makes sense, what is written down, what is told."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy

from .moments import as_stored
from .selection import KINDS, PENDING, TABLES

STATES = (*TABLES, PENDING)

# Characters that a name has at most.
LENGTHS = {
    "queue": 128,
    "task": 255,
    "error": 255,
    "worker": 128,
    "recurring": 255,
    "key": 255,
    "text": 1_000_000,
}
# Characters of a value that are told.
LONGEST = 255
SMALLEST, LARGEST = -(2**15), 2**15 - 1
# Before and behind, no id tells a moment.
FIRST_YEAR, LAST_YEAR = 1970, 9000

_CHOICES = {"state": STATES, "kind": tuple(KINDS)}
_MOMENTS = ("enqueued_from", "enqueued_until", "finished_from", "finished_until")
_NAMES = {*_CHOICES, *LENGTHS, *_MOMENTS, "priority", "in_arguments"}


class SearchError(ValueError):
    """Jobs are to be searched by something that makes no sense."""


def read(text: str) -> dict[str, Any]:
    """What a search was written down as; a SearchError if it was not."""
    try:
        facts = json.loads(text)
    except ValueError as error:
        raise SearchError(f"A search is written as JSON: {error}.") from error
    if not isinstance(facts, dict):
        raise SearchError("A search is a JSON object.")
    unknown = ", ".join(sorted(facts.keys() - _NAMES))
    if unknown:
        raise SearchError(f"Jobs cannot be searched by {unknown}.")
    moments = {each: _moment(each, facts[each]) for each in _MOMENTS if each in facts}
    return facts | moments


def check(given: Mapping[str, Any]) -> None:
    """Raise a SearchError for what makes no sense."""
    for name, value in given.items():
        if name in _CHOICES:
            _check_choice(name, value)
        elif name in LENGTHS:
            _check_name(name, value)
        elif name in _MOMENTS:
            _check_moment(name, value)
    _check_priority(given.get("priority", 0))
    if not isinstance(given.get("in_arguments", False), bool):
        raise SearchError("in_arguments is either true or false.")


def told(given: Mapping[str, Any]) -> str:
    """A search as people say it."""
    jobs = _STATES_OF_JOBS.get(given.get("state", ""), _ANY)
    return ", ".join([str(jobs), *_parts(given)])


def told_discreetly(given: Mapping[str, Any]) -> str:
    """Likewise, for those who may not see the arguments that were searched."""
    if not given.get("in_arguments"):
        return told(given)
    others = {name: value for name, value in given.items() if name != "text"}
    return f"{told(others)}, {_BY_ARGUMENTS}"


def _parts(given: Mapping[str, Any]) -> Iterator[str]:
    for name, words in _WORDS.items():
        if name in given:
            yield str(words) % _shown(given[name])


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        local = timezone.localtime(value) if timezone.is_aware(value) else value
        return f"{local:%Y-%m-%d %H:%M}"
    return Truncator(value).chars(LONGEST)


def _moment(name: str, value: Any) -> datetime:
    try:
        moment = as_stored(datetime.fromisoformat(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise SearchError(f"{name} is not a moment: {value!r}.") from error
    if settings.USE_TZ and timezone.is_naive(moment):
        raise SearchError(f"{name} has no time zone: {value!r}.")
    return moment


def _check_choice(name: str, value: Any) -> None:
    if value not in _CHOICES[name]:
        known = ", ".join(_CHOICES[name])
        raise SearchError(f"{name} must be one of {known}, got {value!r}.")


def _check_name(name: str, value: Any) -> None:
    if not isinstance(value, str) or "\0" in value:
        raise SearchError(f"{name} must be a text, got {value!r}.")
    if len(value) > LENGTHS[name]:
        raise SearchError(f"{name} has at most {LENGTHS[name]:,} characters.")


def _check_moment(name: str, value: Any) -> None:
    if not isinstance(value, datetime) or timezone.is_aware(value) != settings.USE_TZ:
        raise SearchError(f"{name} must be a moment as it is stored, got {value!r}.")
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise SearchError(f"{name} is out of reach: {value!r}.")


def _check_priority(value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise SearchError(f"priority must be a whole number, got {value!r}.")
    if not SMALLEST <= value <= LARGEST:
        raise SearchError(f"priority is from {SMALLEST} to {LARGEST}, got {value}.")


_BY_ARGUMENTS = gettext_lazy("found by a text in their arguments")
_ANY = gettext_lazy("jobs")
_STATES_OF_JOBS = {
    "scheduled": gettext_lazy("scheduled jobs"),
    "ready": gettext_lazy("ready jobs"),
    "blocked": gettext_lazy("blocked jobs"),
    "claimed": gettext_lazy("running jobs"),
    "failed": gettext_lazy("failed jobs"),
    "finished": gettext_lazy("finished jobs"),
    PENDING: gettext_lazy("pending jobs"),
}
_WORDS = {
    "queue": gettext_lazy("in queue %s"),
    "task": gettext_lazy("of task %s"),
    "priority": gettext_lazy("with priority %s"),
    "error": gettext_lazy("with exception %s"),
    "kind": gettext_lazy("of kind %s"),
    "worker": gettext_lazy("run by %s"),
    "recurring": gettext_lazy("of recurring task %s"),
    "key": gettext_lazy("with concurrency key %s"),
    "enqueued_from": gettext_lazy("enqueued from %s on"),
    "enqueued_until": gettext_lazy("enqueued before %s"),
    "finished_from": gettext_lazy("ended from %s on"),
    "finished_until": gettext_lazy("ended before %s"),
    "text": gettext_lazy("found by “%s”"),
}
