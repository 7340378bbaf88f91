"""The report of the benchmarks, from the lines of a run that never was."""

import json
from xml.etree import ElementTree

import pytest

from benchmarks import bars, chart, records, report
from benchmarks.plan import KEYED, UNLIMITED
from benchmarks.records import Record
from benchmarks.summary import Summary

MACHINE = {
    "machine": {
        "processor": "Abacus",
        "cores": 2,
        "memory": "24 GiB",
        "kernel": "Linux 6",
        "python": "3.13.0",
        "servers": {"postgresql": "PostgreSQL 15.1"},
        "settings": {"postgresql": {"fsync": "on"}},
        "on_disk": True,
        "versions": {"robust-queue": "0.1"},
        "notes": {"pgqueuer": {"default": "1 process, async tasks"}},
    }
}


def line(workload, system, value, configuration="default", variant="", **more):
    place = {"database": "postgresql", "variant": variant, "repeat": 1}
    names = {"workload": workload, "system": system, "configuration": configuration}
    figures = {"value": value, "statements": 0.04, **more}
    return {**names, **place, "figures": figures}


def failure(system):
    return {**line("drain", system, 0), "figures": {}, "error": "it would not start"}


LINES = [
    MACHINE,
    *(line("drain", "robust-queue", value) for value in (9_000, 11_000, 10_000)),
    *(line("drain", "pgqueuer", value) for value in (4_000, 6_000, 5_300)),
    line("drain", "oban", 2_000),
    failure("dj-queue"),
    line("drain", "raw", 20_000, "best"),
    line("drain", "robust-queue", 8_000, "best", commits=0.02),
    line("hot", "robust-queue", 3_000),
    line("hot", "dj-queue", 30),
    line("keys", "robust-queue", 4_600, variant=KEYED),
    line("keys", "robust-queue", 10_000, variant=UNLIMITED),
    line("latency", "robust-queue", 2.0, p95=3.0, p99=4.0, from_call=3.0),
    line("latency", "oban", 2.5, p95=3.0, p99=3.0, from_call=3.0),
]


@pytest.fixture
def run():
    return records.parse(json.dumps(each) for each in LINES)


@pytest.fixture
def summary(run):
    return Summary(run)


def test_repeats_become_a_median_and_a_spread(summary):
    row = summary.find("drain", "robust-queue")
    assert row.values == (10_000, 9_000, 11_000)
    assert row.repeats == 3


def test_ours_is_divided_by_theirs_in_the_same_configuration(summary):
    assert summary.ratio(summary.find("drain", "oban")) == 5
    assert summary.ratio(summary.find("drain", "raw", "best")) == 0.4
    assert summary.ratio(summary.find("hot", "dj-queue")) == 100


def test_bars_are_judged_with_a_tolerance(summary):
    verdicts = {bar.words: bar.verdict for bar in bars.judge(summary)}
    assert verdicts["drain, default, in multiples of oban's default"] == "ok"
    assert (
        verdicts["drain, default, in multiples of pgqueuer's default"] == "within 10 %"
    )
    assert verdicts["drain, best, as a share of raw psycopg"] == "missed"
    assert verdicts["commits per job of a drain, best"] == "ok"
    assert verdicts["hot key, one at a time: jobs/s"] == "ok"
    keyed = "drain with 10,000 keys, one at a time for each, to no limit"
    assert verdicts[keyed] == "within 10 %"
    assert verdicts["latency from idle, p50, in multiples of oban's"] == "ok"
    assert verdicts["latency from idle, p99, in multiples of oban's"] == "missed"
    assert (
        verdicts["drain, default, in multiples of dj-queue's default"] == "not measured"
    )


def test_the_text_has_the_machine_the_tables_and_the_bars(run, summary):
    text = report.render(run, summary)
    assert "Abacus, 2 cores, 24 GiB" in text
    assert "fsync=on" in text
    assert "9,000-11,000" in text
    assert "failed: it would not start" in text
    assert "1 process, async tasks" in text
    assert "within 10 %" in text


def test_the_chart_is_an_image_with_a_bar_for_each_system(run, summary):
    image = ElementTree.fromstring(chart.draw(summary, run.machine["notes"]))  # noqa: S314
    names = [each.attrib.get("class") for each in image.iter() if "rect" in each.tag]
    assert names.count("ours") == 3
    assert names.count("raw") == 1
    words = [each.text for each in image.iter() if each.tag.endswith("text")]
    assert "pgqueuer (async tasks)" in words


def test_the_report_of_nothing_is_no_error(tmp_path):
    nothing = records.parse([])
    report.write(nothing, tmp_path, "nothing")
    assert (tmp_path / "nothing.svg").exists()


def test_a_measurement_is_told_in_one_line():
    figures = {"value": 1234.5, "commits": 0.02, "jobs": 7, "cpu_ms": None}
    record = Record("drain", "oban", "best", "postgresql", "", 1, figures)
    told = "drain oban best postgresql 1,234 jobs/s commits 0.02, jobs 7"
    assert " ".join(records.in_words(record).split()) == told
