"""From a text to a crontab. The one module that knows croniter.

It takes croniter's word for what a field stands for, and for no more: which time comes
next, and what happens when clocks are turned, is answered here, both ways and the same
with every version of it.
"""

import re
from functools import lru_cache
from typing import TypeAlias

from croniter import croniter  # type: ignore[import-untyped]

from .crontabs import LAST, Crontab
from .refusals import FORMS, refusal

# What croniter expands a field to: numbers, "*" for all of them, "l" for the last.
Field: TypeAlias = list[int | str]
# By weekday, which ones of the month: numbers, or "l" for the last.
Counted: TypeAlias = dict[int, set[int | str]]

NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_LETTERS = re.compile("[a-z]+")
# A weekday of one week: "5#2", "L5".
_COUNTED = re.compile("[#l]")
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DAYS = "sun|mon|tue|wed|thu|fri|sat"
_KNOWN = {*_MONTHS.split("|"), *_DAYS.split("|"), "l"}
# "5-5", which croniter would take for the whole day.
_RANGE_OF_ONE = re.compile(r"(?<![\w-])(\w+)-\1(?:/0*[1-9][0-9]*)?(?![\w/-])")


@lru_cache(maxsize=1024)
def read(text: str) -> Crontab:
    """The crontab of a text that has no superfluous space; nonsense raises ValueError.

    Kept, because a scheduler reads the same few again and again.
    """
    fields = NAMES.get(text.lower(), text)
    _refuse_other_forms(text, fields)
    crontab = _crontab(fields, *_expanded(text, fields))
    if not crontab.is_possible:
        raise refusal(text, "there is no such day")
    return crontab


def _refuse_other_forms(text: str, fields: str) -> None:
    if fields.startswith("@"):
        cure = f"There are {', '.join(NAMES)}."
        raise refusal(text, "there is no such name", cure=cure)
    *others, weekdays = fields.lower().split() or [""]
    if len(others) not in {4, 5}:
        raise refusal(text, "it has neither five fields nor six", cure=FORMS)
    _refuse_letters(text, {*_LETTERS.findall(fields.lower())} - _KNOWN)
    if len({bool(_COUNTED.search(each)) for each in weekdays.split(",")}) > 1:
        # croniter refuses some of them, and takes part of the others for the whole.
        cause = "it has days of every week beside days of one week of the month"
        raise refusal(text, cause, cure="Write two schedules.")


def _refuse_letters(text: str, letters: set[str]) -> None:
    if "r" in letters:
        raise refusal(text, "R would be another time each time")
    if letters:
        cause = f"{min(letters)!r} names neither a month nor a day"
        raise refusal(text, cause, cure=FORMS)


def _expanded(text: str, fields: str) -> tuple[list[Field], Counted]:
    plain = _RANGE_OF_ONE.sub(r"\1", fields.lower())
    try:
        expanded: tuple[list[Field], Counted]
        expanded = croniter.expand(plain, second_at_beginning=True)
    except ValueError as error:
        # Of what is no error of its own, croniter tells the whole traceback.
        cause = str(error).strip().splitlines()[-1].rstrip(".")
        raise refusal(text, cause, cure=FORMS) from None
    return expanded


def _crontab(fields: str, expanded: list[Field], counted: Counted) -> Crontab:
    minutes, hours, days, months, weekdays, *seconds = expanded
    days, weekdays = _telling(days, weekdays, counted)
    return Crontab(
        fields=fields,
        hours=_numbers(hours, range(24)),
        minutes=_numbers(minutes, range(60)),
        seconds=_numbers(seconds[0], range(60)) if seconds else (0,),
        days=frozenset(_numbers(days, range(1, 32))),
        months=frozenset(_numbers(months, range(1, 13))),
        weekdays=_weekdays(counted or _every_week(weekdays)),
    )


def _telling(days: Field, weekdays: Field, counted: Counted) -> tuple[Field, Field]:
    """Of the two fields for days, one that has them all leaves it to the other."""
    if "*" in weekdays and not counted:
        return days, []
    return ([] if "*" in days else days), weekdays


def _every_week(weekdays: Field) -> Counted:
    return {int(each): {1, 2, 3, 4, 5} for each in weekdays}


def _weekdays(counted: Counted) -> frozenset[tuple[int, int]]:
    return frozenset(
        (weekday, _number(nth)) for weekday, nths in counted.items() for nth in nths
    )


def _numbers(field: Field, every: range) -> tuple[int, ...]:
    if "*" in field:
        return tuple(every)
    return tuple(sorted(map(_number, field)))


def _number(expanded: int | str) -> int:
    return LAST if expanded == "l" else int(expanded)
