"""When a recurring task is due: crontab texts, read by croniter.

The one module that knows croniter. It is pure: moments and zones are handed in.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]

FORMS = (
    "Write five fields (minute, hour, day of the month, month, day of the week), six "
    "with seconds as the first, or a name such as @daily."
)

# A field that croniter would fill with another random number each time.
_RANDOM = re.compile(r"(?<![a-z])r(?![a-z])", re.IGNORECASE)
_HOURS = 1  # where croniter has the hours, once a text is expanded
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A crontab text that makes sense; nonsense raises ValueError.

    Seconds, if there are six fields, come first, as in most crons that have them.
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValueError(f"{self.text!r} is no schedule. {FORMS}")  # noqa: TRY004
        # Two ways to write the same must not look like a change.
        object.__setattr__(self, "text", " ".join(self.text.split()))
        _refuse_nonsense(self.text)

    def __str__(self) -> str:
        return self.text

    def next_after(self, moment: datetime, zone: tzinfo) -> datetime:
        """The first instant later than the moment, in UTC; clocks are the zone's.

        A time that the zone's clock shows twice counts once, the first time, unless
        the schedule has a wildcard for the hour: then it goes by elapsed time.
        """
        shown_twice_counts = self._has_every_hour()
        for instant in self._instants(moment.astimezone(zone)):
            if instant <= moment:
                continue
            if shown_twice_counts or not instant.astimezone(zone).fold:
                return instant
        raise AssertionError("Schedules have no end.")

    def _instants(self, start: datetime) -> Iterator[datetime]:
        # Instants are whole seconds: none lies between the moment and its second.
        runs = _croniter(self.text, start.replace(microsecond=0))
        while True:
            yield runs.get_next(datetime).astimezone(UTC)

    def _has_every_hour(self) -> bool:
        fields, _ = croniter.expand(self.text, second_at_beginning=True)
        return bool(fields[_HOURS] == ["*"])


def _refuse_nonsense(text: str) -> None:
    if not text.startswith("@") and len(text.split()) not in {5, 6}:
        raise ValueError(f"{text!r} is no schedule. {FORMS}")
    if not text.startswith("@") and _RANDOM.search(text):
        raise ValueError(f"{text!r} is no schedule: R would be another time each time.")
    try:
        _croniter(text, _LONG_AGO).get_next(datetime)
    except CroniterBadDateError:
        raise ValueError(f"{text!r} is no schedule: there is no such day.") from None
    except ValueError as error:
        cause = str(error).rstrip(".")
        raise ValueError(f"{text!r} is no schedule: {cause}. {FORMS}") from None


def _croniter(text: str, start: datetime) -> croniter:
    return croniter(text, start, second_at_beginning=True)
