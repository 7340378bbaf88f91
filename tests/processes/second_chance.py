"""A second chance for tests with real processes, told at the end of the run.

They wait for facts, but not for ever, and some are about deadlines. A machine that is
busy with something else can be late for those. What fails twice has failed.
"""

from _pytest.runner import runtestprotocol

_first_failures = []


def pytest_runtest_protocol(item, nextitem):
    if "/processes/" not in item.nodeid:
        return None
    hook, place = item.ihook, {"nodeid": item.nodeid, "location": item.location}
    hook.pytest_runtest_logstart(**place)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failures = [report for report in reports if report.failed]
    if failures:
        _first_failures.extend(failures)
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(**place)
    return True


def pytest_terminal_summary(terminalreporter):
    for report in _first_failures:
        terminalreporter.section(f"Failed at the first try: {report.nodeid}")
        terminalreporter.write_line(str(report.longrepr)[-4000:])
