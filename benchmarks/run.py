"""Measure Robust Queue beside the alternatives: `make bench`.

Every figure is printed as it comes and kept in a file of JSON lines; the report at the
end can be drawn again from that file with --report.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks import machine, measure, plan, records, report, servers
from benchmarks.databases import KINDS, Databases
from benchmarks.plan import Case
from benchmarks.processes import ROOT, StepError
from benchmarks.records import Record
from benchmarks.systems import MODULES
from tests.server_process import ServiceError

OUT = ROOT / ".cache" / "bench"
REPEATS = 5
QUICK_REPEATS = 2
ERROR_LENGTH = 400


def main() -> int:
    """Measure what was asked for, and report."""
    signal.signal(signal.SIGTERM, _leave)
    options = _options()
    if options.report:
        report.write(records.load(options.report), options.out, options.report.stem)
        return 0
    cases = _chosen(options)
    if options.list:
        print(*(case.title for case in cases), sep="\n")
        return 0
    cases = _possible(cases)
    if not cases:
        print("No case is left to measure.", file=sys.stderr)
        return 2
    return _run(cases, options)


def _run(cases: list[Case], options: argparse.Namespace) -> int:
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl"
    began = time.monotonic()
    code = 0
    try:
        with ExitStack() as stack:
            at = stack.enter_context(servers.started(plan.needed_databases(cases)))
            databases = {
                kind: stack.enter_context(closing(KINDS[kind](address)))
                for kind, address in at.items()
            }
            _note(path, machine.describe(databases, {case.system for case in cases}))
            _measure_all(cases, databases, path, options)
    except KeyboardInterrupt:
        print("Interrupted: what was measured so far is reported.", flush=True)
        code = 128 + signal.SIGINT
    report.write(records.load(path), options.out, path.stem)
    print(f"Measured in {(time.monotonic() - began) / 60:.1f} minutes.")
    return code


def _measure_all(
    cases: list[Case],
    databases: dict[str, Databases],
    path: Path,
    options: argparse.Namespace,
) -> None:
    for _, group in groupby(cases, key=lambda case: case.workload):
        block = list(group)
        for number, (repeat, case) in enumerate(_interleaved(block, options), 1):
            total = sum(_repeats(each, options) for each in block)
            record = _measured(case, repeat, databases[case.database])
            _note(path, asdict(record))
            print(f"[{number}/{total}] {records.in_words(record)}", flush=True)
        for each in databases.values():
            each.forget()


def _interleaved(
    cases: list[Case], options: argparse.Namespace
) -> Iterator[tuple[int, Case]]:
    """Yield all cases, then all again beginning with another, as often as asked for."""
    most = max(_repeats(case, options) for case in cases)
    for repeat in range(most):
        start = repeat * len(cases) // most
        for case in (*cases[start:], *cases[:start]):
            if repeat < _repeats(case, options):
                yield repeat + 1, case


def _repeats(case: Case, options: argparse.Namespace) -> int:
    return min(case.repeats or options.repeats, options.repeats)


def _measured(case: Case, repeat: int, databases: Databases) -> Record:
    began = time.monotonic()
    try:
        figures, error = measure.measure(case, databases), ""
    except Exception as problem:
        # Whatever it is, it is one system's; the others go on.
        figures, error = {}, _in_short(problem)
    return Record(
        workload=case.workload,
        system=case.system,
        configuration=case.configuration,
        database=case.database,
        variant=case.variant,
        repeat=repeat,
        figures=figures,
        error=error,
        seconds=round(time.monotonic() - began, 1),
    )


def _in_short(problem: Exception) -> str:
    words = str(problem) if isinstance(problem, StepError) else repr(problem)
    return words[-ERROR_LENGTH:]


def _chosen(options: argparse.Namespace) -> list[Case]:
    cases = list(plan.quick() if options.quick else plan.full())
    return [
        replace(case, seconds=options.seconds or case.seconds)
        for case in cases
        if (not options.only or case.workload in options.only)
        and (not options.systems or case.system in options.systems)
        and (not options.databases or case.database in options.databases)
        and (not options.configurations or case.configuration in options.configurations)
    ]


def _possible(cases: list[Case]) -> list[Case]:
    """Leave out what this machine has no server for, and say so."""
    lacks = {kind: servers.lack(kind) for kind in plan.needed_databases(cases)}
    for kind, lack in lacks.items():
        if lack:
            print(f"Left out: everything on {kind}. {lack}", flush=True)
    return [case for case in cases if not lacks[case.database]]


def _note(path: Path, values: dict[str, Any]) -> None:
    with path.open("a") as lines:
        lines.write(json.dumps(values) + "\n")


def _leave(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="the essentials, within five minutes")
    add("--only", type=_among(plan.WORKLOADS), help="workloads, with commas between")
    add("--systems", type=_among(MODULES), help="systems, with commas between")
    add("--databases", type=_among(KINDS), help="databases, with commas between")
    add("--configurations", type=_words, help="configurations, with commas between")
    add("--repeats", type=int, help=f"{REPEATS} if not given, or {QUICK_REPEATS}")
    add("--seconds", type=float, help="how long a drain is watched at most")
    add("--out", type=Path, default=OUT, help="the folder of what is written")
    add("--report", type=Path, metavar="FILE", help="draw the report of a run again")
    add("--list", action="store_true", help="tell what would be measured")
    options = parser.parse_args()
    if not options.repeats:
        options.repeats = QUICK_REPEATS if options.quick else REPEATS
    return options


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _among(known: Sequence[str] | dict[str, Any]) -> Any:
    def chosen(text: str) -> list[str]:
        words = _words(text)
        if unknown := [word for word in words if word not in known]:
            names = ", ".join(known)
            message = f"{', '.join(unknown)} is none of {names}"
            raise argparse.ArgumentTypeError(message)
        return words

    return chosen


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ServiceError as error:
        sys.exit(f"Error: {error}")
