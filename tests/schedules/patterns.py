"""Crontabs made up at random, as a text and as what it means.

The two are made side by side, so that nobody has to read the text to know its meaning.
"""

from dataclasses import dataclass
from datetime import timedelta

LAST = "L"
MONTHS = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
EVERY_HOUR = ["*", "*/1", "0-23", "0-11,12-23", "*,5"]
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pattern:
    """A crontab. Of days and weekdays, None has nothing to say."""

    text: str
    seconds: frozenset
    minutes: frozenset
    hours: frozenset
    days: frozenset | None
    months: frozenset
    # Pairs of a weekday and which one of the month: a number, LAST, or None for all.
    weekdays: frozenset | None

    @property
    def has_every_hour(self):
        return self.hours == frozenset(range(24))

    def has(self, wall):
        return (
            wall.second in self.seconds
            and wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.month in self.months
            and self._has_day(wall)
        )

    def _has_day(self, wall):
        if self.days is None and self.weekdays is None:
            return True
        return self._has_number(wall) or self._has_weekday(wall)

    def _has_number(self, wall):
        if self.days is None:
            return False
        ends = (wall + DAY).month != wall.month
        return wall.day in self.days or (ends and LAST in self.days)

    def _has_weekday(self, wall):
        if self.weekdays is None:
            return False
        weekday = (wall.weekday() + 1) % 7
        which = {None, (wall.day - 1) // 7 + 1}
        if (wall + 7 * DAY).month != wall.month:
            which.add(LAST)
        return any((weekday, each) in self.weekdays for each in which)


def pattern(random, walls, *, seconds=False):
    """One that has to do with some of these times of a clock."""
    wall = random.choice(walls)
    fields = {
        "seconds": _field(random, 0, 59, wall.second) if seconds else ("", {0}),
        "minutes": _field(random, 0, 59, wall.minute),
        "hours": _hours(random, wall),
        "days": _days(random, wall),
        "months": _months(random, wall),
        "weekdays": _weekdays(random, wall),
    }
    text = " ".join(text for text, _ in fields.values()).strip()
    meanings = {
        name: None if meaning is None else frozenset(meaning)
        for name, (_, meaning) in fields.items()
    }
    return Pattern(text, **meanings)


def dated(random, wall):
    """One that has only the date of this time."""
    minutes, hours = _field(random, 0, 59, wall.minute), _hours(random, wall)
    text = f"{minutes[0]} {hours[0]} {wall.day} {wall.month} *"
    meaning = frozenset(minutes[1]), frozenset(hours[1]), frozenset([wall.day])
    return Pattern(text, frozenset([0]), *meaning, frozenset([wall.month]), None)


def _hours(random, wall):
    if random.random() < 0.3:
        return random.choice(EVERY_HOUR), range(24)
    return _field(random, 0, 23, wall.hour)


def _days(random, wall):
    if random.random() < 0.6:
        return random.choice("*?"), None
    forms = (_list, _range, _ascending_steps, _number, _last)
    return random.choice(forms)(random, 1, 31, wall.day)


def _months(random, wall):
    if random.random() < 0.7:
        return "*", range(1, 13)
    if random.random() < 0.5:
        return MONTHS[wall.month - 1], {wall.month}
    return _field(random, 1, 12, wall.month)


def _weekdays(random, wall):
    if random.random() < 0.6:
        return random.choice("*?"), None
    weekday = (wall.weekday() + 1) % 7
    return random.choice((_some_weekdays, _nth_weekday, _last_weekday))(random, weekday)


def _some_weekdays(random, weekday):
    text, days = random.choice((_list, _number))(random, 0, 6, weekday)
    if len(days) == 1:
        text = random.choice([text, WEEKDAYS[weekday].upper(), str(weekday or 7)])
    return text, {(each, None) for each in days}


def _nth_weekday(random, weekday):
    nths = sorted({random.randint(1, 5) for _ in range(2)})
    text = ",".join(f"{weekday}#{nth}" for nth in nths)
    return text, {(weekday, nth) for nth in nths}


def _last_weekday(random, weekday):
    return f"L{weekday}", {(weekday, LAST)}


def _last(random, low, high, number):
    text, days = random.choice([("L", {LAST}), (f"{number},l", {number, LAST})])
    return text, days


def _field(random, low, high, number):
    forms = (_every, _number, _list, _range, _steps, _ascending_steps, _steps_from)
    return random.choice(forms)(random, low, high, number)


def _every(random, low, high, number):
    return "*", range(low, high + 1)


def _number(random, low, high, number):
    return str(number), {number}


def _list(random, low, high, number):
    numbers = [number, *(random.randint(low, high) for _ in range(2))]
    return ",".join(map(str, numbers)), set(numbers)


def _range(random, low, high, number):
    """A proper one, perhaps over the end of the field: "22-2"."""
    first, last = number, random.randint(low, high)
    if first == last:
        return _number(random, low, high, number)
    if first < last:
        return f"{first}-{last}", set(range(first, last + 1))
    return f"{first}-{last}", {*range(first, high + 1), *range(low, last + 1)}


def _steps(random, low, high, number):
    step = random.randint(1, high)
    return f"*/{step}", set(range(low, high + 1, step))


def _ascending_steps(random, low, high, number):
    first, last = sorted([number, random.randint(low, high)])
    if first == last:
        return _number(random, low, high, number)
    step = random.randint(1, 7)
    return f"{first}-{last}/{step}", set(range(first, last + 1, step))


def _steps_from(random, low, high, number):
    step = random.randint(1, 7)
    return f"{number}/{step}", set(range(number, high + 1, step))
