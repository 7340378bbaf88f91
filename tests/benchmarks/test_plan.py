"""What the benchmarks measure exists."""

import pytest

from benchmarks import measure, plan, records, report
from benchmarks.systems import MODULES, load

CASES = dict.fromkeys([*plan.full(), *plan.quick()])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_every_case_is_possible(case):
    system = load(case.system)
    assert case.database in system.databases
    assert case.configuration in system.configurations
    assert case.workload != "bulk" or system.has_bulk
    assert case.workload != "depth" or system.fills_deep
    assert hasattr(system, f"command_{case.filling}")


def test_every_system_is_measured():
    assert {case.system for case in CASES} == set(MODULES)


def test_every_workload_is_measured_and_reported():
    workloads = {case.workload for case in CASES}
    for known in (measure.WORKLOADS, plan.WORKLOADS, records.UNITS, report.EXTRAS):
        assert set(known) == workloads


def test_nothing_is_measured_twice_in_one_run():
    for cases in (list(plan.full()), list(plan.quick())):
        assert len(cases) == len(set(cases))
