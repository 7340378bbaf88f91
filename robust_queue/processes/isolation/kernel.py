"""The kernel: what has to be asked of it beyond Python's own modules.

Linux only, as far as marked. Elsewhere a process that leaves its group is not found.
"""

import ctypes
import math
import os
import resource
import sys
import threading
from contextlib import suppress
from pathlib import Path
from signal import Signals

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent dies (Linux)."""
    _ask(_PR_SET_CHILD_SUBREAPER, 1)


def hear_of_parent(number: Signals) -> None:
    """Have this signal sent when the parent of this process dies (Linux)."""
    _ask(_PR_SET_PDEATHSIG, number)


def _ask(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def children() -> set[int]:
    """The processes whose parent this one is, those that have ended included (Linux).

    Asked by processes with one thread only: the kernel counts by thread.
    """
    if sys.platform != "linux":
        return set()
    try:
        found = Path(f"/proc/self/task/{threading.get_native_id()}/children")
        return set(map(int, found.read_text().split()))
    except FileNotFoundError:
        return set(_children_by_looking())


def _children_by_looking() -> set[int]:
    """Where the kernel was built without that list."""
    found, me = set(), os.getpid()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            _, _, facts = (folder / "stat").read_text().rpartition(")")
            if int(facts.split()[1]) == me:
                found.add(int(folder.name))
    return found


def has_children() -> bool:
    """Does any process live whose parent this one is? Those that ended are reaped."""
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return True
    except ChildProcessError:
        return False


def limit_memory(more: int) -> None:
    """Let this process have so many bytes beyond what it has now."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _address_space() + more
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def limit_cpu(more: float) -> None:
    """Let this process compute for so many seconds more; then comes SIGXCPU."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = math.ceil(_cpu_time() + more)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    # The hard limit stays: once lowered, it could not be raised for the next task.
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _cpu_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _address_space() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()
