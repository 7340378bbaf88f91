"""Rates, percentiles, medians and spreads."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

# Processes do not begin at the same moment; the first seconds are nobody's best.
WARM_UP = 0.5
SHORTEST = 1.0


class Spread(NamedTuple):
    """The figures of several repeats."""

    median: float
    least: float
    most: float


def spread(figures: Sequence[float]) -> Spread:
    """Return the median of some figures, and the ends."""
    return Spread(median(figures), min(figures), max(figures))


def rate(times: Sequence[float]) -> float:
    """Return how many events happened in a second, without the first half of one.

    That half is left out if at least a second remains, else nothing is.
    """
    if len(times) < 2:
        return 0.0
    begin = times[0] + WARM_UP
    counted = times
    if times[-1] - begin >= SHORTEST:
        counted = [each for each in times if each >= begin]
    return (len(counted) - 1) / (counted[-1] - counted[0])


def percentiles(figures: Sequence[float]) -> tuple[float, float, float]:
    """Return the 50th, 95th and 99th percentile, by the nearest rank."""
    if not figures:
        return float("nan"), float("nan"), float("nan")
    ordered = sorted(figures)
    return tuple(_rank(ordered, share) for share in (50, 95, 99))  # type: ignore[return-value]


def _rank(ordered: Sequence[float], share: int) -> float:
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]
