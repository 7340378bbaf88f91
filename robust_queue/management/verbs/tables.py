"""Tables as a terminal shows them: columns as wide as what is in them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from django.utils import timezone


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a table; numbers stand to the right."""
    lines = [[_shown(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *lines, strict=True)]
    for line in [titles, *lines]:
        cells = map(_placed, line, widths)
        yield "  ".join(cells).rstrip()


def moment(at: datetime | None) -> str:
    """A moment, to the second, where the project is at home."""
    if at is None:
        return ""
    local = timezone.localtime(at) if timezone.is_aware(at) else at
    return f"{local:%Y-%m-%d %H:%M:%S}"


def length(time: timedelta) -> str:
    """A length of time, to the second."""
    return str(timedelta(seconds=round(time.total_seconds())))


def _shown(cell: object) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    # A name may come from anywhere, and a terminal would obey some characters.
    return "".join(each if each.isprintable() else " " for each in str(cell))


def _placed(text: str, width: int) -> str:
    is_number = text.replace(",", "").isdecimal()
    return text.rjust(width) if is_number else text.ljust(width)
