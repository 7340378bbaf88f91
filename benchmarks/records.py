"""What was measured, as it is kept in a file of JSON lines."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

UNITS = {
    "drain": "jobs/s",
    "hot": "jobs/s",
    "keys": "jobs/s",
    "enqueue": "calls/s",
    "bulk": "jobs/s",
    "latency": "ms",
    "depth": "jobs/s",
    "finished": "jobs/s",
    "idle": "CPU s/min",
    "memory": "MiB",
    "naps": "jobs/s",
    "share": "s",
    "mix": "ms",
    "api": "jobs/s",
    "dashboard": "ms",
}


@dataclass(frozen=True)
class Record:
    """One measurement of one case."""

    workload: str
    system: str
    configuration: str
    database: str
    variant: str
    repeat: int
    figures: dict[str, Any]
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """All measurements of one run, and where it ran."""

    records: list[Record]
    machine: dict[str, Any] = field(default_factory=dict)


def load(path: Path) -> Run:
    """Read what a run has left."""
    return parse(path.read_text().splitlines())


def parse(lines: Iterable[str]) -> Run:
    """Read the lines of a file: that of the machine, and one for each measurement."""
    values = [json.loads(line) for line in lines if line.strip()]
    machine: dict[str, Any] = {}
    for each in values:
        _add(machine, each.get("machine", {}))
    found = [Record(**each) for each in values if "machine" not in each]
    return Run(found, machine)


def _add(machine: dict[str, Any], more: dict[str, Any]) -> None:
    """Add what another run says: files may be joined, in order to read them as one."""
    for name, value in more.items():
        if isinstance(value, dict):
            machine[name] = {**machine.get(name, {}), **value}
        else:
            machine[name] = value


def in_words(record: Record) -> str:
    """Return one measurement as a line for the person who waits."""
    names = [record.system, record.configuration, record.variant]
    name = " ".join(each for each in names if each)
    head = f"{record.workload:8} {name:34} {record.database:10}"
    if record.error:
        return f"{head} failed: {record.error}"
    value = f"{record.figures['value']:,.4g} {UNITS[record.workload]}"
    if record.figures["value"] >= 100:
        value = f"{record.figures['value']:,.0f} {UNITS[record.workload]}"
    others = [
        f"{key} {each:.3g}" if isinstance(each, float) else f"{key} {each}"
        for key, each in record.figures.items()
        # What is told of each page is a table of its own.
        if key != "value" and each is not None and ": " not in key
    ]
    return f"{head} {value:>16}   {', '.join(others)}"
