"""Rates and percentiles of the benchmarks."""

import math

import pytest

from benchmarks import marks
from benchmarks.figures import percentiles, rate, spread


class TestRate:
    def test_the_first_half_second_is_left_out(self):
        slow = [0.0, 0.25]
        steady = [0.5 + number / 100 for number in range(301)]
        assert rate([*slow, *steady]) == pytest.approx(100)

    def test_a_short_run_counts_as_a_whole(self):
        assert rate([0.0, 0.5, 1.0]) == pytest.approx(2)

    @pytest.mark.parametrize("times", [[], [1.0]])
    def test_one_event_makes_no_rate(self, times):
        assert rate(times) == 0


class TestPercentiles:
    def test_they_are_figures_that_were_measured(self):
        assert percentiles(list(range(1, 101))) == (50, 95, 99)

    def test_one_figure_is_all_of_them(self):
        assert percentiles([7.0]) == (7, 7, 7)

    def test_nothing_is_not_a_number(self):
        assert all(map(math.isnan, percentiles([])))


def test_a_spread_has_the_median_and_the_ends():
    assert spread([3, 1, 10]) == (3, 1, 10)


def test_marks_are_read_in_the_order_of_time(tmp_path, monkeypatch):
    path = tmp_path / "marks"
    monkeypatch.setenv("BENCH_MARKS", str(path))
    assert marks.count(path) == 0
    for number in (5, 3):
        marks.mark(number)
    # A mark that is being written.
    with path.open("ab") as file:
        file.write(b"half")
    assert marks.count(path) == 2
    assert [each.number for each in marks.read(path)] == [5, 3]
