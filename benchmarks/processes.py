"""The processes of a system: started, watched, and gone afterwards."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
GRACE = 12.0
TAIL = 4

_TICK = os.sysconf("SC_CLK_TCK")
# Nothing that is reported tells where on which machine this ran.
_PLACES = {str(ROOT): ".", sys.base_prefix: "python", str(Path.home()): "~"}


class StepError(Exception):
    """A process of a system failed; the message is the end of what it said."""


class Workers:
    """The processes that work off a queue, with all that they have started."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]], log: Path) -> None:
        self._processes = processes
        self._log = log

    def check(self) -> None:
        """Fail if one of them has ended, as a worker should not by itself."""
        for process in self._processes:
            if process.poll() is not None:
                code = process.returncode
                raise StepError(f"worker ended with {code}: {tail(self._log)}")

    def cpu(self) -> float:
        """Return the seconds of CPU that they have used so far."""
        return sum(each.cpu for each in self._members())

    def memory(self) -> float:
        """Return the MiB they use, shared pages divided among those who share them."""
        return sum(_pss(each.pid) for each in self._members()) / 1024

    def count(self) -> int:
        """Return how many processes there are."""
        return len(self._members())

    def words(self) -> str:
        """Return the end of what they have said."""
        return tail(self._log)

    def end(self) -> None:
        """Ask them to stop, insist after a while, and see that nobody stays."""
        leaders = [process for process in self._processes if process.poll() is None]
        known = {each.pid for each in self._members()}
        for process in leaders:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and self._left(known):
            time.sleep(0.05)
        for pid in self._left(known):
            _kill(pid)
        for process in self._processes:
            process.wait()
        deadline = time.monotonic() + GRACE
        while left := self._left(known):
            if time.monotonic() > deadline:
                raise StepError(f"processes {sorted(left)} cannot be ended")
            time.sleep(0.02)

    def _left(self, known: set[int]) -> set[int]:
        """Return who is still there, among those once seen or in their sessions."""
        for process in self._processes:
            process.poll()
        running = {each.pid for each in _all() if each.state != "Z"}
        return (known | {each.pid for each in self._members()}) & running

    def _members(self) -> list["_Process"]:
        sessions = {process.pid for process in self._processes}
        found = {each.pid: each for each in _all() if each.session in sessions}
        grown = True
        while grown:
            children = [
                each
                for each in _all()
                if each.parent in found and each.pid not in found
            ]
            found.update((each.pid, each) for each in children)
            grown = bool(children)
        return list(found.values())


@contextmanager
def workers(
    commands: Sequence[Sequence[str]], environment: dict[str, str], log: Path
) -> Iterator[Workers]:
    """Run these processes for the block, each in a session of its own."""
    processes: list[subprocess.Popen[bytes]] = []
    group = Workers(processes, log)
    try:
        with log.open("wb") as output:
            for command in commands:
                process = subprocess.Popen(
                    [*_tied(), *command],
                    cwd=ROOT,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                processes.append(process)
        yield group
    finally:
        group.end()


def _tied() -> list[str]:
    """Return the prefix that ends a worker when this process ends, however it does."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig=TERM"] if setpriv else []


def step(command: Sequence[str], environment: dict[str, str], *, limit: float) -> str:
    """Run a process to its end and return the last line it printed."""
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StepError(f"{command[-2:]} took longer than {limit:.0f} s") from error
    if done.returncode:
        raise StepError(_last_lines(done.stderr or done.stdout))
    return done.stdout.strip().splitlines()[-1]


def tail(log: Path) -> str:
    """Return the end of a log in one line."""
    return _last_lines(log.read_text(errors="replace"))


def _last_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    text = " / ".join(lines[-TAIL:])
    for place, name in _PLACES.items():
        text = text.replace(place, name)
    return text


class _Process(NamedTuple):
    pid: int
    state: str
    parent: int
    session: int
    cpu: float


def _all() -> list[_Process]:
    found = (_read(int(each.name)) for each in Path("/proc").glob("[0-9]*"))
    return [each for each in found if each is not None]


def _read(pid: int) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name, in parentheses, may contain anything.
    fields = text.rpartition(")")[2].split()
    state, parent, session = fields[0], int(fields[1]), int(fields[3])
    cpu = sum(map(int, fields[11:15])) / _TICK
    return _Process(pid, state, parent, session, cpu)


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
