"""Runs of pytest: some at a time, each with a log, a line and its counts."""

import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from checkout import CACHE, ROOT
from parts import Part

OUTCOMES = ("passed", "failed", "skipped")
SECONDS_TO_STOP = 30
SUMMARY = re.compile(r"^=* ?((?:\d+ \w+|no tests ran).*) in [\d.:]+ ?s")
COUNT = re.compile(r"(\d+) (passed|failed|skipped|error)")


@dataclass(slots=True)
class Run:
    """A pytest process of a cell, or of a part of one."""

    part: Part
    process: subprocess.Popen[bytes]
    log: TextIO
    started: float = field(default_factory=time.monotonic)

    def output(self) -> str:
        """Return everything pytest has written so far."""
        self.log.seek(0)
        return self.log.read()


def run(
    parts: Iterable[Part], arguments: Sequence[str], *, at_once: int
) -> Counter[str]:
    """Run pytest for every part; return how many tests passed, failed, were skipped."""
    waiting, running, counts = list(parts), list[Run](), Counter[str]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_start(waiting.pop(0), arguments))
            finished = _next_finished(running)
            running.remove(finished)
            counts += _report(finished)
    finally:
        _interrupt(running)
    return counts


def _start(part: Part, arguments: Sequence[str]) -> Run:
    folder = CACHE / part.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pytest.log"
    # A new file each time: a second `make test` keeps its own.
    path.unlink(missing_ok=True)
    log = path.open("w+", errors="replace")
    pytest = [str(part.cell.environment.python), "-m", "pytest", "--color=no"]
    cache = ["-o", f"cache_dir={folder / 'pytest'}"]
    command = [*pytest, *cache, *part.arguments, *arguments]
    print(f"{part.name}: started", flush=True)
    # Its own session, so that Ctrl-C reaches pytest once: from `_interrupt`.
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=_variables(part),
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    return Run(part, process, log)


def _variables(part: Part) -> dict[str, str]:
    return {
        **os.environ,
        # Tests start thousands of processes: none is to compile everything anew.
        "PYTHONDONTWRITEBYTECODE": "",
        "RQ_DATABASE": part.cell.database,
        "RQ_RUN": f"{part.name}_{os.getpid()}",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(CACHE / part.name / "hypothesis"),
    }


def _next_finished(running: list[Run]) -> Run:
    while True:
        for candidate in running:
            if candidate.process.poll() is not None:
                return candidate
        time.sleep(0.1)


def _report(finished: Run) -> Counter[str]:
    seconds = time.monotonic() - finished.started
    code, output = finished.process.returncode, finished.output()
    summary = _summary(output)
    if code:
        print(f"----- log of {finished.part.name} -----\n{output}-----", flush=True)
    verdict = f"FAILED (exit code {code})" if code else "passed"
    print(f"{finished.part.name}: {verdict}, {seconds:.0f} s: {summary}", flush=True)
    finished.log.close()
    return _counts(summary, code)


def _summary(output: str) -> str:
    matches = [SUMMARY.match(line) for line in output.splitlines()]
    found = [match[1] for match in matches if match]
    return found[-1] if found else "pytest gave no summary"


def _counts(summary: str, code: int) -> Counter[str]:
    counts = Counter({word: int(number) for number, word in COUNT.findall(summary)})
    counts["failed"] += counts.pop("error", 0)
    # A cell that broke down before its first test has failed all the same.
    if code and not counts["failed"]:
        counts["failed"] = 1
    return counts


def _interrupt(running: list[Run]) -> None:
    for run in running:
        run.process.send_signal(signal.SIGINT)
    for run in running:
        try:
            run.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            # The whole session: the tests' own sub-processes too.
            os.killpg(run.process.pid, signal.SIGKILL)
