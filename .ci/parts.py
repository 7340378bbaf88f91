"""Cells in parts: what waits most of the time runs beside what computes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import environments
from cells import Cell

# Folders of tests that are runs of their own. The first wait for processes.
PROCESSES = "tests/processes"
BROWSER = "tests/browser"


@dataclass(frozen=True, slots=True)
class Part:
    """A run of pytest: a cell, or some of its folders."""

    cell: Cell
    # All that is left over, if it is none of them.
    folder: str = ""
    # What has parts of its own.
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the cell, and of the folder."""
        return "-".join(filter(None, [self.cell.name, self.folder.rpartition("/")[2]]))

    @property
    def arguments(self) -> list[str]:
        """What pytest is told to collect."""
        if self.folder:
            return [self.folder]
        return [f"--ignore={each}" for each in self.others]


def whole(cells: Iterable[Cell]) -> list[Part]:
    """Each cell as it is."""
    return [Part(cell) for cell in cells]


def in_parts(cells: Sequence[Cell]) -> list[Part]:
    """The parts of cells, in an order in which half of those that run wait.

    Older environments leave out most of what has a part of its own.
    """
    newest = [each for each in cells if each.environment == environments.NEWEST]
    waiting = [Part(each, PROCESSES) for each in newest]
    computing = [Part(each, BROWSER) for each in newest if each.has_browser]
    computing += [Part(each, others=(PROCESSES, BROWSER)) for each in newest]
    computing += [Part(each) for each in cells if each not in newest]
    return [*waiting[:2], *computing[:1], *waiting[2:], *computing[1:]]
