"""Debian packages: what is missing, and its installation where that is allowed."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO

import interpreters
from checkout import CACHE, chromium, private_servers, services


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something only the system's package manager can bring."""

    name: str
    packages: tuple[str, ...]
    is_met: Callable[[], bool]


def install_missing(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Install what is missing if that is allowed; return what stays missing."""
    missing = [requirement for requirement in requirements if not requirement.is_met()]
    if missing and _may_install():
        _install(missing)
    return [requirement for requirement in missing if not requirement.is_met()]


def in_words(requirement: Requirement) -> str:
    """Say what is missing and how to get it."""
    packages = " ".join(requirement.packages)
    return f"{requirement.name} missing; cure: apt-get install {packages}."


def missing_servers(kinds: Iterable[str]) -> dict[str, Requirement]:
    """Return the database servers that are neither named, installed nor installable."""
    needed = [kind for kind in kinds if kind in SERVERS and not services.is_named(kind)]
    missing = install_missing(SERVERS[kind] for kind in needed)
    return {kind: SERVERS[kind] for kind in needed if SERVERS[kind] in missing}


def missing_companions(kinds: Iterable[str]) -> list[Requirement]:
    """Return what some tests need beside a server, and is not installable either."""
    needed = [COMPANIONS[kind] for kind in kinds if kind in COMPANIONS]
    return install_missing(needed)


def missing_for_benchmarks() -> list[Requirement]:
    """Return the servers of the benchmarks that are not installable either."""
    return install_missing([*SERVERS.values(), REDIS])


def python_headers(version: interpreters.Version) -> Requirement:
    """Return what compiling against one version of Python needs."""
    name = f"python{version[0]}.{version[1]}"
    probe = "import os, sysconfig as s; os.stat(s.get_path('include') + '/Python.h')"
    command = [interpreters.found().get(version, name), "-c", probe]
    return Requirement(
        f"Headers of {name}", (f"{name}-dev",), lambda: succeeds(command)
    )


def succeeds(command: list[str]) -> bool:
    """Run a probe that says nothing; False also if its program is missing."""
    try:
        return subprocess.call(command, stderr=subprocess.DEVNULL) == 0
    except FileNotFoundError:
        return False


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(missing: list[Requirement]) -> None:
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "apt.log").open("w") as log:
        _apt(["update"], log)
        # One by one: a package that does not exist must not hinder the others.
        for requirement in missing:
            print(f"Installing Debian packages: {requirement.name} ...", flush=True)
            _apt(["install", "--no-install-recommends", *requirement.packages], log)
    # What was found before may be out of date now.
    interpreters.found.cache_clear()


def _apt(command: list[str], log: IO[str]) -> None:
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=600", "-y", *command]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # What apt could not bring is reported as missing by the caller.
    subprocess.run(apt, env=quiet, stdout=log, stderr=log, check=False)


def _is_found(find: Callable[[], object]) -> bool:
    try:
        find()
    except services.ServiceError:
        return False
    return True


def _has_mariadb_headers() -> bool:
    if shutil.which("mariadb_config") or shutil.which("mysql_config"):
        return True
    return succeeds(["pkg-config", "--exists", "libmariadb"])


SERVERS = {
    "postgresql": Requirement(
        "PostgreSQL server",
        ("postgresql",),
        lambda: _is_found(private_servers.postgresql_programs),
    ),
    "mariadb": Requirement(
        "MariaDB server",
        ("mariadb-server-core", "mariadb-client-core"),
        lambda: _is_found(private_servers.mariadb_programs),
    ),
}

# The broker of some of the queues that the benchmarks compare.
REDIS = Requirement(
    "Redis server",
    ("redis-server",),
    lambda: bool(shutil.which("redis-server") or shutil.which("valkey-server")),
)

# Only some tests of these databases need it, also where their server is named.
COMPANIONS = {
    "postgresql": Requirement(
        "PgBouncer",
        ("pgbouncer",),
        lambda: _is_found(private_servers.pgbouncer_program),
    ),
}

# Debian's own: what Playwright would download is built for fewer systems.
CHROMIUM = Requirement(
    "Chromium", ("chromium", "fonts-dejavu-core"), lambda: bool(chromium.program())
)

# A worker outside is written for it.
NODE = Requirement("Node", ("nodejs",), lambda: bool(shutil.which("node")))

# mysqlclient is published as source only.
COMPILER = (
    Requirement("C compiler", ("gcc", "libc6-dev"), lambda: bool(shutil.which("gcc"))),
    Requirement(
        "pkg-config", ("pkg-config",), lambda: bool(shutil.which("pkg-config"))
    ),
    Requirement("MariaDB headers", ("libmariadb-dev",), _has_mariadb_headers),
)

# Debian packs this part of the standard library on its own.
VENV = Requirement(
    "Python's venv", ("python3-venv",), lambda: bool(interpreters.found())
)
