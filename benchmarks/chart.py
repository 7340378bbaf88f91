"""The chart of a run: an SVG written by hand, legible on light and on dark."""

import math
from collections.abc import Iterable, Iterator, Mapping
from xml.sax.saxutils import escape

from benchmarks.plan import OURS
from benchmarks.summary import Row, Summary, best_first
from benchmarks.systems.base import POSTGRESQL, REDIS

# What each configuration of each system is.
Notes = Mapping[str, Mapping[str, str]]

WIDTH = 900
LABELS = 250
FIGURES = 130
LINE = 22
BAR = 14
TITLE = 46
FOOT = 30
MARGIN = 16

FOOTNOTE = (
    "Logarithmic scales. Medians; lines from the least to the most. "
    "Redis without persistence, the others durable."
)
STYLE = """
    svg { color: #1f2328; background: #ffffff; font: 13px system-ui, sans-serif; }
    text { fill: currentColor; }
    .title { font-weight: 600; font-size: 15px; }
    .faint { fill-opacity: .65; font-size: 11px; }
    .grid { stroke: currentColor; stroke-opacity: .15; }
    .whisker { stroke: currentColor; stroke-opacity: .7; }
    .bar { fill: #8c959f; } .ours { fill: #0969da; } .raw { fill: #d4a72c; }
    @media (prefers-color-scheme: dark) {
      svg { color: #e6edf3; background: #0d1117; }
      .bar { fill: #6e7681; } .ours { fill: #58a6ff; } .raw { fill: #9e7c1b; }
    }
"""

PANELS = (
    ("drain", "default", "Drain, as installed, jobs/s"),
    ("drain", "best", "Drain, best configuration, jobs/s"),
    ("enqueue", "default", "Enqueue one by one, calls/s"),
    ("bulk", "default", "Enqueue a thousand at once, jobs/s"),
    ("latency", "default", "Latency from idle, median in ms: shorter is better"),
)


def draw(summary: Summary, notes: Notes) -> str:
    """Return the chart of everything that compares systems."""
    parts: list[str] = []
    top = MARGIN
    for workload, configuration, title in PANELS:
        rows = _rows(summary, workload, configuration)
        if rows:
            labels = [_label(row, notes) for row in rows]
            parts += _panel(title, rows, labels, top)
            top += TITLE + LINE * len(rows) + FOOT
    parts.append(_text(MARGIN, top + 8, FOOTNOTE, "faint"))
    top += FOOT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" '
        f'viewBox="0 0 {WIDTH} {top}" role="img" aria-label="Robust Queue measured">'
    )
    style = f"<style>{STYLE}</style>"
    return "\n".join([head, style, *parts, "</svg>"]) + "\n"


def _rows(summary: Summary, workload: str, configuration: str) -> list[Row]:
    rows = [
        row
        for row in summary.of(workload)
        if row.configuration.startswith(configuration)
        and row.database in {POSTGRESQL, REDIS}
        and row.value
    ]
    return best_first(rows)


def _panel(title: str, rows: list[Row], labels: list[str], top: float) -> Iterator[str]:
    scale = _Scale(rows)
    first = top + TITLE - 12
    last = first + LINE * len(rows)
    yield _text(MARGIN, top + 16, title, "title")
    for power in scale.powers():
        x = scale.x(power)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{first}" y2="{last}"/>'
        yield _text(x, last + 14, f"{power:,g}", "faint", "middle")
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        yield from _bar(row, label, scale, first + LINE * number)


def _bar(row: Row, label: str, scale: "_Scale", top: float) -> Iterator[str]:
    values = row.values
    if values is None:
        return
    kind = {OURS: "ours", "raw": "raw"}.get(row.system, "bar")
    middle, base = top + LINE / 2, top + (LINE - BAR) / 2
    width = scale.x(values.median) - LABELS
    yield _text(LABELS - 8, middle + 4, label, "", "end")
    yield (
        f'<rect class="{kind}" x="{LABELS}" y="{base:.1f}" width="{width:.1f}" '
        f'height="{BAR}" rx="2"/>'
    )
    low, high = scale.x(values.least), scale.x(values.most)
    yield (
        f'<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" '
        f'y1="{middle}" y2="{middle}"/>'
    )
    figure = f"{values.median:,.0f}" if values.median >= 100 else f"{values.median:.3g}"
    yield _text(max(high, LABELS + width) + 6, middle + 4, figure)


def _label(row: Row, notes: Notes) -> str:
    if row.system == "raw":
        return "raw psycopg, the limit"
    words = [row.system]
    if notes.get(row.system, {}).get(row.configuration, "").endswith("async tasks"):
        words.append("(async tasks)")
    if row.database == REDIS:
        words.append("(Redis)")
    return " ".join(words)


class _Scale:
    """Powers of ten at equal distances."""

    def __init__(self, rows: Iterable[Row]) -> None:
        values = [row.values for row in rows if row.values]
        least = min(each.least for each in values)
        most = max(each.most for each in values)
        self._low = math.floor(math.log10(least * 0.9))
        self._high = max(math.log10(most), self._low + 1)

    def x(self, value: float) -> float:
        room = WIDTH - LABELS - FIGURES
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return LABELS + room * share

    def powers(self) -> list[float]:
        return [10.0**n for n in range(self._low, math.floor(self._high) + 1)]


def _text(x: float, y: float, words: str, name: str = "", anchor: str = "start") -> str:
    kind = f' class="{name}"' if name else ""
    return (
        f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )
