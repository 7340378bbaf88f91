"""Charts, drawn on the server: a few paths of SVG, coloured by the style sheet.

No script, no inline style, nothing to fetch. What a chart shows is said in words for
those who do not see it, and stands in a table beside it where single values matter.
"""

from collections.abc import Iterable, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

# A chart is stretched to the room it has: its own units are points by thousandths.
HEIGHT = 100
BAR = 0.8  # of the room of a point
SPARK_WIDTH, SPARK_HEIGHT = 120, 24

Values = Sequence[float | None]


def bars(series: Sequence[Values], names: Sequence[str], told: Iterable[str]) -> str:
    """Bars on top of one another; each point is told on demand."""
    points = [*zip(*series, strict=True)]
    top = max((_total(each) for each in points), default=0) or 1
    drawn = [_bars_of(points, at, top) for at in range(len(series))]
    return _chart(drawn, names, "rqueue-bars", told, len(points))


def lines(series: Sequence[Values], names: Sequence[str], told: Iterable[str]) -> str:
    """Lines across one another, with gaps where nothing is known."""
    known = [value for values in series for value in values if value is not None]
    top, length = max(known, default=0) or 1, max(map(len, series))
    drawn = [_line_of(values, top, HEIGHT, 1) for values in series]
    return _chart(drawn, names, "rqueue-lines", told, length)


def sparkline(values: Values, label: str) -> SafeString:
    """A line no higher than the text around it."""
    top = max((value for value in values if value is not None), default=0) or 1
    step = SPARK_WIDTH / max(len(values), 1)
    return format_html(
        '<svg class="rqueue-spark" viewBox="0 0 {} {}" role="img" aria-label="{}" '
        'preserveAspectRatio="none"><path d="{}"/></svg>',
        SPARK_WIDTH,
        SPARK_HEIGHT,
        label,
        _line_of(values, top, SPARK_HEIGHT, step),
    )


def marks(values: Sequence[float], kinds: Sequence[str], label: str) -> SafeString:
    """Small bars, each of its own kind; those of no height are seen as well."""
    top, width = max(values, default=0) or 1, SPARK_WIDTH / 20
    bars_of_kinds = (
        (kind, f"{at * width:.1f}", f"{SPARK_HEIGHT - height:.1f}", f"{height:.1f}")
        for at, (value, kind) in enumerate(zip(values, kinds, strict=True))
        for height in [max(value / top * SPARK_HEIGHT, SPARK_HEIGHT / 4)]
    )
    drawn = format_html_join(
        "",
        '<rect class="rqueue-mark-{}" x="{}" y="{}" width="5" height="{}"/>',
        bars_of_kinds,
    )
    return format_html(
        '<svg class="rqueue-spark" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        "{}</svg>",
        SPARK_WIDTH,
        SPARK_HEIGHT,
        label,
        drawn,
    )


def _chart(
    drawn: Sequence[str],
    names: Sequence[str],
    kind: str,
    told: Iterable[str],
    length: int,
) -> SafeString:
    paths = format_html_join(
        "", '<path class="rqueue-series-{}" d="{}"/>', enumerate(drawn, 1)
    )
    places = format_html_join(
        "",
        '<rect x="{}" y="0" width="1" height="{}"><title>{}</title></rect>',
        ((at, HEIGHT, text) for at, text in enumerate(told)),
    )
    return format_html(
        '<svg class="rqueue-chart {}" viewBox="0 0 {} {}" role="img" aria-label="{}" '
        'preserveAspectRatio="none">{}{}</svg>',
        kind,
        max(length, 1),
        HEIGHT,
        ", ".join(names),
        paths,
        places,
    )


def _bars_of(points: Sequence[Sequence[float | None]], at: int, top: float) -> str:
    """One path for all bars of a series, each upon those of the series before."""
    steps = []
    for place, values in enumerate(points):
        height = _scaled(values[at], top)
        if height:
            floor = HEIGHT - _scaled(_total(values[:at]), top)
            left = place + (1 - BAR) / 2
            steps.append(f"M{left:.1f} {floor:.1f}v-{height:.1f}h{BAR}v{height:.1f}z")
    return "".join(steps)


def _line_of(values: Values, top: float, height: float, step: float) -> str:
    steps, pen = [], "M"
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        # As far from the edges as the line is wide.
        y = height - 1 - value / top * (height - 2)
        x = (place + 0.5) * step
        # A point between two gaps would be no line at all.
        dot = f"h{0.01 * step:.2f}" if pen == "M" else ""
        steps.append(f"{pen}{x:.1f} {y:.1f}{dot}")
        pen = "L"
    return "".join(steps)


def _scaled(value: float | None, top: float) -> float:
    return (value or 0) / top * HEIGHT


def _total(values: Iterable[float | None]) -> float:
    return sum(value or 0 for value in values)
