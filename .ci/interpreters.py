"""Python interpreters of this machine, found by running them.

Running is the only proof: a pyenv shim of an inactive version exists and fails, and
Debian's python3 without python3-venv lacks ensurepip.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

OLDEST = (3, 11)
TESTED = ((3, 11), (3, 12), (3, 13))
PROBE = "import sys, venv, ensurepip, sqlite3, ssl; print(*sys.version_info[:2])"

Version = tuple[int, int]


@cache
def found() -> dict[Version, str]:
    """Return a working interpreter for each supported version of Python."""
    interpreters: dict[Version, str] = {}
    for candidate in _candidates():
        version = _version(candidate)
        if version is not None and version >= OLDEST:
            interpreters.setdefault(version, candidate)
    return interpreters


def newest() -> Version:
    """Return the newest version at hand, rather a tested one than an untested."""
    tested = [version for version in found() if version in TESTED]
    return max(tested or found())


def _candidates() -> Iterator[str]:
    yield sys.executable
    for folder in os.get_exec_path():
        yield from _programs(Path(folder), "python3.1[1-9]")
        yield from _programs(Path(folder), "python3")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from _programs(pyenv / "versions", "3.1[1-9]*/bin/python3")


def _programs(folder: Path, pattern: str) -> list[str]:
    return [str(path) for path in sorted(folder.glob(pattern))]


def _version(candidate: str) -> Version | None:
    try:
        probe = subprocess.run(
            [candidate, "-c", PROBE], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = probe.stdout.split()
    return int(major), int(minor)
