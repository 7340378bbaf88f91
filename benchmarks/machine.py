"""The machine, the versions and the settings that a run was made with.

Nothing here names the machine: no host, no path, no address.
"""

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import servers
from benchmarks.databases import Databases
from benchmarks.plan import OURS
from benchmarks.systems import load

COMPANIONS = ("Django", "psycopg", "asyncpg", "mysqlclient", "redis", "uvloop")


def describe(databases: dict[str, Databases], systems: Iterable[str]) -> dict[str, Any]:
    """Return what a reader has to know about the circumstances."""
    return {
        "machine": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)),
            "memory": f"{_memory():.0f} GiB",
            "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
            "python": platform.python_version(),
            "servers": {kind: each.version() for kind, each in databases.items()},
            "settings": {kind: servers.SETTINGS[kind] for kind in databases},
            "on_disk": servers.is_on_disk(),
            "versions": _versions([OURS, *sorted(systems), *COMPANIONS]),
            "notes": {name: _notes(name) for name in systems},
        }
    }


def _versions(names: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _notes(name: str) -> dict[str, str]:
    """Return what the system's module says about its configurations."""
    try:
        configurations = load(name).configurations
    except ImportError:
        return {}
    return {
        each: f"{found.note}, async tasks" if found.asynchronous else found.note
        for each, found in configurations.items()
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
