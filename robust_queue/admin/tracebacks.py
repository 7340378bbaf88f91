"""Tracebacks: first what is our own code, the rest on demand."""

import re
from collections.abc import Iterator

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from . import display

_FRAME = re.compile(r'^[\s|]*File "(?P<file>[^"]+)", line \d+')
# Wherever the worker runs: what is installed, or comes with Python.
_FOREIGN = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python3(?:\.\d+)?t?[/\\]"
    r"|[/\\]Lib[/\\]"
    r"|^<frozen ",
)


def shown(text: str) -> SafeString | str:
    """The frames of our own, and all of it for those who want that."""
    own = own_frames(text)
    if not own or own == text.strip("\n"):
        return display.block(text)
    return format_html(
        "{}<details><summary>{}</summary>{}</details>",
        display.block(own),
        _("all of the traceback"),
        display.block(text),
    )


def own_frames(text: str) -> str:
    """A traceback without the frames of others; nothing if none would be left."""
    kept, is_any = [], False
    for lines in _parts(text):
        frame = _FRAME.match(lines[0])
        if frame is None:
            kept += lines
        elif not _FOREIGN.search(frame["file"]):
            kept += lines
            is_any = True
    return "\n".join(kept) if is_any else ""


def _parts(text: str) -> Iterator[list[str]]:
    """Each frame with the lines that show its code; any other line for itself."""
    part: list[str] = []
    for line in text.strip("\n").split("\n"):
        belongs = part and _FRAME.match(part[0]) and _is_within(line)
        if belongs:
            part.append(line)
            continue
        if part:
            yield part
        part = [line]
    if part:
        yield part


def _is_within(line: str) -> bool:
    """Is it code, or marks under it, of the frame before?"""
    text = line.lstrip("| ")
    return line[:4].strip("| ") == "" and bool(text) and not _FRAME.match(line)
