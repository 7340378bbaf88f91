"""Charts: a few paths, whatever the values are."""

import re
from xml.etree import ElementTree

import pytest

from robust_queue.admin import charts


def parsed(svg):
    return ElementTree.fromstring(svg)  # noqa: S314 (our own)


def paths(svg):
    return [each.get("d") for each in parsed(svg).iter("path")]


def heights(path):
    return [float(height) for height in re.findall(r"v-([\d.]+)", path)]


def test_bars_stand_upon_one_another_and_the_highest_fills_the_chart():
    svg = charts.bars([[1, 3, 0], [1, 1, 0]], ["done", "failed"], ["a", "b", "c"])
    lower, upper = paths(svg)
    assert heights(lower) == [25.0, 75.0]
    assert heights(upper) == [25.0, 25.0]
    assert "M1.1 25.0v-25.0" in upper


def test_each_point_is_told_on_demand():
    svg = charts.bars([[1, 2]], ["done"], ["16:00, 1 done", "16:01, <b>2</b>"])
    titles = [each.text for each in parsed(svg).iter("title")]
    assert titles == ["16:00, 1 done", "16:01, <b>2</b>"]


def test_what_is_not_seen_is_said():
    svg = parsed(charts.bars([[1]], ["done: 1", "failed: 0"], ["x"]))
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == "done: 1, failed: 0"


def test_a_line_has_gaps_where_nothing_is_known():
    (line,) = paths(charts.lines([[1.0, None, 2.0, 2.0]], ["wait"], ["a"] * 4))
    assert line.count("M") == 2
    assert line.count("L") == 1


@pytest.mark.parametrize("draw", [charts.bars, charts.lines])
@pytest.mark.parametrize("values", [[], [0, 0], [0]])
def test_nothing_is_a_chart_too(draw, values):
    parsed(draw([values], ["none"], [""] * len(values)))


def test_nothing_but_gaps_is_a_chart_too():
    assert paths(charts.lines([[None, None]], ["wait"], ["", ""])) == [""]
    assert paths(charts.sparkline([None, None], "nothing")) == [""]


def test_a_sparkline_says_what_it_shows():
    svg = parsed(charts.sparkline([1, 5, 2], 'queue "<mail>"'))
    assert svg.get("aria-label") == 'queue "<mail>"'


@pytest.mark.parametrize("draw", [charts.bars, charts.lines])
def test_neither_style_nor_script_is_inline(draw):
    svg = draw([[1, 2], [3, 4]], ["a", "b"], ["x", "y"])
    assert "style" not in svg
    assert "<script" not in svg


def test_marks_are_told_apart_and_none_is_too_small_to_be_seen():
    svg = parsed(charts.marks([0, 10, 5], ["skipped", "failed", "succeeded"], "runs"))
    rects = [*svg.iter("rect")]
    assert [each.get("class").rpartition("-")[2] for each in rects] == [
        "skipped",
        "failed",
        "succeeded",
    ]
    assert [float(each.get("height")) for each in rects] == [6.0, 24.0, 12.0]
