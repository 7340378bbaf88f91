"""What an operator sees: once, and at once."""

from robust_queue.processes.exits import ExitCode


def test_the_banner_is_written_once_and_before_the_first_job(supervised):
    """Buffered output would be written again by every child."""
    supervisor = supervised(environment={"PYTHONUNBUFFERED": ""}).until_up()
    assert supervisor.log.count("Robust Queue ") == 1
    assert supervisor.stop() == ExitCode.DONE
    assert supervisor.log.count("Robust Queue ") == 1
