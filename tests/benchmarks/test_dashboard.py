"""Pages of dashboards beside each other, from a run that never was."""

from dataclasses import asdict

import pytest

from benchmarks import bars, records, report
from benchmarks.dashboard import comparison, jobs
from benchmarks.records import Record, Run
from benchmarks.summary import Summary


def record(system, size, **pages):
    figures = {"value": 1.0, **comparison.flat(pages)}
    place = {"configuration": "dashboard", "database": "postgresql"}
    return Record("dashboard", system, variant=size, repeat=1, figures=figures, **place)


def page(ms, statements=5):
    return {"ms": ms, "statements": statements}


RUN = Run(
    [
        record(
            "robust-queue",
            "1,000",
            **{"job": page(20), "job?state=failed": page(20), "failures": page(10)},
        ),
        record(
            "robust-queue",
            "1,000,000",
            **{
                "job": page(30, statements=13),
                "job?state=failed": page(50),
                "failures": page(35),
                "job/1": page(10, statements=20),
                "broken": {"status": 500},
            },
        ),
        record("dj-queue", "1,000", job=page(1)),
        record(
            "dj-queue",
            "1,000,000",
            **{
                "job": page(40),
                "job?status=failed": page(45),
                "failedexecution": page(900),
                "job/1": page(11),
            },
        ),
    ]
)


@pytest.fixture
def pages():
    return {each.name: each for each in comparison.pages(Summary(RUN))}


def test_a_page_is_compared_with_itself_and_with_its_counterpart(pages):
    failures = pages["failures"]
    assert failures.growth == 3.5
    assert failures.counterpart == "failedexecution"
    assert failures.ratio == pytest.approx(35 / 900)
    assert pages["job?state=failed"].counterpart == "job?status=failed"


def test_verdicts(pages):
    assert {name: each.verdict for name, each in pages.items()} == {
        "job": "missed: statements",
        "job?state=failed": "missed: dj-queue",
        "failures": "missed: growth",
        # A page about one row may have more statements than a list.
        "job/1": "ok",
        "broken": "failed: 500",
    }


def test_the_worst_page_stands_for_all_at_the_bars():
    found = [bar for bar in bars.judge(Summary(RUN)) if "pages of" in bar.words]
    assert [round(bar.measured, 2) for bar in found] == [3.5, 1.11, 13]
    assert {bar.verdict for bar in found[:1]} == {"missed"}


def test_the_report_has_a_line_for_each_page():
    text = report.render(RUN, Summary(RUN))
    assert comparison.TITLE in text
    assert "job?state=failed" in text
    assert "missed: growth" in text


def test_while_it_runs_only_the_slowest_is_told():
    assert "failures" not in records.in_words(RUN.records[1])
    assert asdict(RUN.records[1])["figures"]["ms: failures"] == 35


@pytest.mark.parametrize("count", [1_000, 1_000_000])
def test_every_state_has_a_page_of_jobs_and_some_have_finished(count):
    numbers = jobs.numbers(count)
    assert min(numbers.values()) >= jobs.LEAST
    assert sum(numbers.values()) < count
    assert count % jobs.STRIDE != 0


def test_a_tenth_has_failed():
    assert jobs.numbers(1_000_000)["failed"] == 100_000
