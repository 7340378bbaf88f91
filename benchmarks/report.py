"""The report of a run."""

from pathlib import Path

from benchmarks.records import Run


def write(run: Run, folder: Path, name: str) -> None:
    """Print the report."""
    print(len(run.records), "records")
