"""The repeats of each case, put together."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from benchmarks.figures import Spread, spread
from benchmarks.plan import BEST, OURS
from benchmarks.records import Record, Run
from benchmarks.systems.base import POSTGRESQL

LOWER_IS_BETTER = {"latency", "idle", "memory", "share", "mix", "dashboard"}

Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Row:
    """A case with the figures of all its repeats."""

    workload: str
    system: str
    configuration: str
    database: str
    variant: str
    values: Spread | None
    figures: dict[str, float]
    """The medians of everything else that was measured."""
    repeats: int
    error: str

    @property
    def value(self) -> float | None:
        """The median, if it was measured at all."""
        return self.values.median if self.values else None


class Summary:
    """All cases of a run."""

    def __init__(self, run: Run) -> None:
        cases: dict[Key, list[Record]] = defaultdict(list)
        for record in run.records:
            cases[_key(record)].append(record)
        self.rows = [_row(records) for records in cases.values()]
        self._by_key = {_row_key(row): row for row in self.rows}

    def of(self, workload: str) -> list[Row]:
        """Return the cases of one workload."""
        return [row for row in self.rows if row.workload == workload]

    def workloads(self) -> list[str]:
        """Return what was measured, in the order in which it was."""
        return list(dict.fromkeys(row.workload for row in self.rows))

    def find(
        self,
        workload: str,
        system: str,
        configuration: str = "default",
        database: str = POSTGRESQL,
        variant: str = "",
    ) -> Row | None:
        """Return one case, if it was measured."""
        return self._by_key.get((workload, system, configuration, database, variant))

    def ours_beside(self, row: Row) -> Row | None:
        """Return the case of ours that another system is to be compared with."""
        ours = row.configuration
        if row.system == OURS:
            ours = "best" if row.configuration in BEST else row.configuration
        # Those who keep their jobs elsewhere stand beside ours on PostgreSQL, and
        # where all of them matter, beside all of our processes.
        for configuration in (ours, "scheduler"):
            for database in (row.database, POSTGRESQL):
                place = (configuration, database, row.variant)
                if found := self.find(row.workload, OURS, *place):
                    return found
        return None

    def ratio(self, row: Row) -> float | None:
        """Return ours divided by theirs."""
        ours = self.ours_beside(row)
        if ours is None or not ours.value or not row.value:
            return None
        return ours.value / row.value


def _key(record: Record) -> Key:
    place = (record.configuration, record.database, record.variant)
    return (record.workload, record.system, *place)


def _row_key(row: Row) -> Key:
    return (row.workload, row.system, row.configuration, row.database, row.variant)


def _row(records: list[Record]) -> Row:
    first = records[0]
    good = [record.figures for record in records if not record.error]
    names = dict.fromkeys(name for figures in good for name in figures)
    figures = {name: _median(name, good) for name in names}
    errors = [record.error for record in records if record.error]
    return Row(
        *_key(first),
        values=spread([each["value"] for each in good]) if good else None,
        figures={name: each for name, each in figures.items() if each is not None},
        repeats=len(good),
        error=errors[-1] if errors else "",
    )


def _median(name: str, repeats: Iterable[dict[str, float | None]]) -> float | None:
    given = [each[name] for each in repeats if each.get(name) is not None]
    return median(each for each in given if each is not None) if given else None


def best_first(rows: Iterable[Row]) -> list[Row]:
    """Sort cases of one workload: the best first, those that failed at the end."""
    rows = list(rows)
    order: Callable[[Row], float] = lambda row: -(row.value or 0)  # noqa: E731
    if rows and rows[0].workload in LOWER_IS_BETTER:
        order = lambda row: row.value if row.value is not None else float("inf")  # noqa: E731
    return sorted(rows, key=order)
