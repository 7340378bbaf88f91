"""The report of a run: tables and bars as text, and a chart."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import bars, chart
from benchmarks.dashboard import comparison
from benchmarks.plan import WORKLOADS
from benchmarks.records import UNITS, Run
from benchmarks.summary import Row, Summary, best_first

REASON_LENGTH = 100

# What is told of each workload besides its median: the heading, and how it is written.
EXTRAS = {
    "drain": (("statements", "statements/job"), ("commits", "commits/job")),
    "hot": (("statements", "statements/job"), ("commits", "commits/job")),
    "keys": (("statements", "statements/job"), ("commits", "commits/job")),
    "enqueue": (("statements", "statements/job"), ("commits", "commits/job")),
    "bulk": (("statements", "statements/job"), ("commits", "commits/job")),
    "latency": (("p95", "p95"), ("p99", "p99"), ("from_call", "p50 from the call")),
    "depth": (("statements", "statements/job"), ("cpu_ms", "CPU ms/job")),
    "finished": (("statements", "statements/job"), ("cpu_ms", "CPU ms/job")),
    "idle": (
        ("statements", "statements/s"),
        ("commits", "transactions/s"),
        ("memory", "MiB"),
        ("processes", "processes"),
    ),
    "memory": (("after", "after"), ("jobs", "jobs"), ("processes", "processes")),
    "naps": (("statements", "statements/job"), ("cpu_ms", "CPU ms/job")),
    "share": (("last", "last start after the call"),),
    "mix": (("p50", "p50"), ("p99", "p99")),
    "api": (("statements", "statements/job"), ("commits", "commits/job")),
    "dashboard": (),
}
WITH_CPU = {"drain", "hot", "keys", "enqueue", "bulk", "api"}


def write(run: Run, folder: Path, name: str) -> None:
    """Print the report, and write it and its chart into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = Summary(run)
    text = render(run, summary)
    (folder / f"{name}.txt").write_text(text)
    (folder / f"{name}.svg").write_text(chart.draw(summary, _notes(run)))
    print(f"\n{text}", flush=True)
    print(f"Written: {name}.jsonl, {name}.txt, {name}.svg")


def render(run: Run, summary: Summary) -> str:
    """Return the whole report as text."""
    notes = _notes(run)
    parts = [_circumstances(run.machine)] if run.machine else []
    for workload in summary.workloads():
        rows = summary.of(workload)
        for database, group in _by_database(rows):
            title = f"{WORKLOADS[workload]} ({database})"
            table = _table(summary, workload, group, notes)
            parts.append(f"{title}\n\n{table}")
    if pages := comparison.pages(summary):
        parts.append(f"{comparison.TITLE}\n\n{_pages(pages)}")
    parts.append(f"Bars (medians)\n\n{checklist(summary)}")
    return "\n\n\n".join(parts) + "\n"


def _pages(pages: Iterable[comparison.Page]) -> str:
    rows = [
        [
            page.name,
            _number(page.statements),
            _number(page.few),
            _number(page.many),
            _number(page.growth),
            page.counterpart,
            _number(page.theirs),
            _number(page.ratio),
            page.verdict,
        ]
        for page in pages
    ]
    return layout(comparison.HEADINGS, rows)


def _notes(run: Run) -> chart.Notes:
    notes: chart.Notes = run.machine.get("notes", {})
    return notes


def checklist(summary: Summary) -> str:
    """Return the bars with what was measured."""
    judged = bars.judge(summary)
    rows = [
        [bar.words, _number(bar.measured), bar.relation, bar.verdict]
        for bar in judged
        if bar.measured is not None
    ]
    verdicts = [bar.verdict for bar in judged]
    counted = ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)
    )
    table = layout(["what", "measured", "bar", "verdict"], rows)
    return f"{table}\n\n{counted}"


def _by_database(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    def database(row: Row) -> str:
        # Whoever keeps jobs in Redis is read beside those on PostgreSQL.
        return "PostgreSQL" if row.database in {"postgresql", "redis"} else row.database

    for name, group in groupby(sorted(rows, key=database), key=database):
        yield {"mariadb": "MariaDB", "sqlite": "SQLite"}.get(name, name), list(group)


def _table(summary: Summary, workload: str, rows: list[Row], notes: chart.Notes) -> str:
    extras = list(EXTRAS[workload])
    if workload in WITH_CPU:
        extras.append(("cpu_ms", "CPU ms/job"))
    headings = ["system", "configuration", UNITS[workload], "min-max", "ours/theirs"]
    headings += [heading for _, heading in extras] + ["note"]
    lines = []
    for row in best_first(rows):
        if row.values is None:
            reason = f"failed: {row.error[-REASON_LENGTH:]}"
            gaps = [""] * (len(extras) + 2)
            lines.append([*_names(row), "-", *gaps, reason])
            continue
        values = row.values
        lines.append(
            [
                *_names(row),
                _number(values.median),
                f"{_number(values.least)}-{_number(values.most)}",
                _number(summary.ratio(row)),
                *(_number(row.figures.get(name)) for name, _ in extras),
                _note(row, notes),
            ]
        )
    return layout(headings, lines)


def _names(row: Row) -> list[str]:
    redis = " (Redis)" if row.database == "redis" else ""
    setup = f"{row.configuration}, {row.variant}" if row.variant else row.configuration
    return [f"{row.system}{redis}", setup]


def _note(row: Row, notes: chart.Notes) -> str:
    # How workers are set up is of no account to those who enqueue.
    setup = notes.get(row.system, {}).get(row.configuration, "")
    words = ["" if row.workload in {"enqueue", "bulk"} else setup]
    if row.error:
        words.append("failed at times")
    for name, words_for in (("lost", "lost"), ("twice", "ran twice")):
        if row.figures.get(name):
            words.append(f"{row.figures[name]:g} {words_for}")
    return "; ".join(word for word in words if word)


def _circumstances(machine: dict[str, Any]) -> str:
    cores = f"{machine['cores']} cores"
    place = "on a disk" if machine["on_disk"] else "in memory, so nothing is durable"
    lines = [
        f"{machine['processor']}, {cores}, {machine['memory']}, {machine['kernel']}",
        f"Python {machine['python']}, {', '.join(machine['servers'].values())}; "
        f"data {place}",
    ]
    for kind, settings in machine["settings"].items():
        words = [f"{name}={value or 'none'}" for name, value in settings.items()]
        lines.append(f"{kind}: {', '.join(words)}")
    versions = [f"{name} {each}" for name, each in machine["versions"].items()]
    return "\n".join([*lines, ", ".join(versions)])


def layout(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in plain text, numbers to the right."""
    columns = list(zip(headings, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    rights = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    lines = [headings, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, rights, strict=True)
        ).rstrip()
        for line in lines
    )


def _is_number(cell: str) -> bool:
    return not cell.strip("0123456789,.-e+")


def _number(value: float | None) -> str:
    """Return a figure with three significant digits or whole."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
