"""The matrix: the newest environment against every database, older ones spread."""

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass

import environments
import packages
from checkout import DevError, leave_out
from environments import Environment

DATABASES = ("sqlite", "postgresql", "mariadb")


@dataclass(frozen=True, slots=True)
class Cell:
    """One environment against one database."""

    environment: Environment
    database: str

    @property
    def name(self) -> str:
        """The name people use, such as py313-django61-postgresql."""
        return f"{self.environment.name}-{self.database}"

    @property
    def has_browser(self) -> bool:
        """Pages are looked at in one cell; see ``tests/conftest.py``."""
        return self.environment == environments.NEWEST and self.database == "sqlite"

    @property
    def has_node(self) -> bool:
        """Workers in another language work here; see ``tests/conftest.py``."""
        return self.environment == environments.NEWEST


# The newest first: it has the most tests, and whatever is last runs alone.
ALL = [
    Cell(environment, database)
    for environment in reversed(environments.MATRIX)
    for database in DATABASES
]


# What is run if nothing is said. All of them would take longer than people wait.
USUAL = (
    f"{environments.NEWEST.name}-*",
    "py312-django60-postgresql",
    "py311-django52-sqlite",
)


def chosen(patterns: Iterable[str]) -> list[Cell]:
    """Return the cells whose names match a pattern, or the usual ones if none is told.

    All of them are ``--only '*'``.
    """
    patterns = list(patterns) or list(USUAL)
    cells = [cell for cell in ALL if _matches(cell, patterns)]
    if not cells:
        names = ", ".join(cell.name for cell in ALL)
        raise DevError(f"No cell is named {' or '.join(patterns)}. There are: {names}.")
    return cells


def possible(cells: list[Cell]) -> list[Cell]:
    """Return the cells this machine has all the parts for; say which it has not."""
    missing = _missing_pythons(cells) | _missing_servers(cells)
    for lack in missing.values():
        leave_out(lack)
    return [
        cell
        for cell in cells
        if not {cell.environment.name, cell.database} & missing.keys()
    ]


def equip(cells: list[Cell]) -> None:
    """Bring what some tests of these cells need; say which of it is not to be had."""
    for missing in packages.missing_companions({cell.database for cell in cells}):
        leave_out(f"tests behind a pooler: {packages.in_words(missing)}")
    if any(cell.has_browser for cell in cells):
        for missing in packages.install_missing([packages.CHROMIUM]):
            leave_out(f"tests in a browser: {packages.in_words(missing)}")
    if any(cell.has_node for cell in cells):
        for missing in packages.install_missing([packages.NODE]):
            leave_out(f"workers in Node: {packages.in_words(missing)}")


def _matches(cell: Cell, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatch(cell.name, pattern) for pattern in patterns)


def _missing_pythons(cells: list[Cell]) -> dict[str, str]:
    needed = dict.fromkeys(cell.environment for cell in cells)
    return {
        environment.name: environments.lack(environment)
        for environment in needed
        if not environments.is_possible(environment)
    }


def _missing_servers(cells: list[Cell]) -> dict[str, str]:
    needed = dict.fromkeys(cell.database for cell in cells)
    missing = packages.missing_servers(needed)
    return {kind: packages.in_words(server) for kind, server in missing.items()}
