"""Workers are woken by news where news arrives, and find their work where it does not.

The polling interval of the workers is far too long here: whatever is picked up at once
was told to them. Without news they still look every five seconds at the latest.
"""

import json
import time

import pytest
from django.db import connection

from robust_queue.lifecycle.pause import pause, resume
from robust_queue.processes.actor import LONGEST_PAUSE
from robust_queue.processes.exits import ExitCode
from tests.support.half_open import half_open_line
from tests.support.invariants import state_of
from tests.support.pgbouncer import pgbouncer
from tests.support.statement_count import statement_count
from tests.testapp.process_tasks import mark, rest

MODULES = ["tests.testapp.process_tasks", "tests.testapp.obstacles"]
HEARD = "Notifications arrive"
DEAF = "No notifications"
AT_ONCE = 2.0
IDLE_SECONDS = 12


@pytest.fixture
def on_postgresql():
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has notifications")


@pytest.fixture
def listening(supervised, on_postgresql):
    """Starts a supervisor that hardly polls, and waits until it hears."""

    def start(*arguments, probes=1.0, **options):
        obstacles = json.dumps({"probe_often": probes})
        supervisor = supervised(
            *arguments,
            task_modules=MODULES,
            environment={"RQ_OBSTACLES": obstacles},
            **{"workers": [{"polling_interval": 60}], **options},
        ).until_up()
        supervisor.until(lambda: HEARD in supervisor.log, "it hears")
        return supervisor

    return start


def picked_up_within(seconds, supervisor, task=mark):
    """Enqueue something, and see it done in time."""
    begun = time.monotonic()
    result = task.enqueue("it")
    supervisor.until(lambda: state_of(result) == "finished", "it has run")
    took = time.monotonic() - begun
    assert took < seconds, f"{took:.2f} s\n{supervisor.log}"


def until_told(supervisor, text, times=1):
    supervisor.until(lambda: supervisor.log.count(text) >= times, f"{text} x {times}")


def stop(supervisor):
    assert supervisor.stop() == ExitCode.DONE


# ── News ───────────────────────────────────────────────────────────────────────


def test_what_is_enqueued_is_picked_up_at_once(listening):
    supervisor = listening(workers=[{"queues": "mail*", "polling_interval": 60}])
    for _ in range(3):
        picked_up_within(AT_ONCE, supervisor, mark.using(queue_name="mail_now"))
    stop(supervisor)


def test_a_queue_that_is_resumed_is_served_at_once(listening):
    supervisor = listening()
    pause("default", "default")
    result = mark.enqueue("it")
    resume("default", "default")
    begun = time.monotonic()
    supervisor.until(lambda: state_of(result) == "finished", "it has run")
    assert time.monotonic() - begun < AT_ONCE
    stop(supervisor)


def test_what_another_worker_gives_back_is_taken_over_at_once(listening, supervised):
    other = supervised(shutdown_timeout=0).until_up()
    result = rest.enqueue("it", 60)
    other.until(lambda: state_of(result) == "claimed", "it runs")
    supervisor = listening()
    assert other.stop() == ExitCode.LEFT_BEHIND
    begun = time.monotonic()
    supervisor.until(lambda: state_of(result) == "claimed", "it runs again")
    assert time.monotonic() - begun < AT_ONCE
    supervisor.send(3)


# ── Trouble ────────────────────────────────────────────────────────────────────


def test_a_listener_that_is_killed_comes_back(listening):
    supervisor = listening()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN %' AND datname = current_database()"
        )
        assert cursor.fetchone() == (1,)
    picked_up_within(LONGEST_PAUSE + AT_ONCE, supervisor)
    until_told(supervisor, DEAF)
    until_told(supervisor, HEARD, times=2)
    picked_up_within(AT_ONCE, supervisor)
    stop(supervisor)


def test_a_server_that_is_restarted_is_listened_to_again(listening, server):
    supervisor = listening(settings=server.settings)
    server.stop()
    server.start()
    picked_up_within(LONGEST_PAUSE + 2 * AT_ONCE, supervisor)
    until_told(supervisor, HEARD, times=2)
    picked_up_within(AT_ONCE, supervisor)
    stop(supervisor)


def test_a_line_that_goes_half_open_is_noticed_and_replaced(listening):
    with half_open_line() as line:
        supervisor = listening(settings=line.settings)
        assert line.black_hole(having_said=b"LISTEN") == 1
        picked_up_within(LONGEST_PAUSE + AT_ONCE, supervisor)
        until_told(supervisor, f"{DEAF}: they are sent and do not arrive")
        until_told(supervisor, HEARD, times=2)
        picked_up_within(AT_ONCE, supervisor)
        stop(supervisor)


@pytest.mark.usefixtures("on_postgresql")
def test_behind_a_pooler_of_transactions_it_polls_and_says_so(supervised):
    with pgbouncer() as pooler:
        supervisor = supervised(
            settings=pooler.settings,
            task_modules=MODULES,
            environment={"RQ_OBSTACLES": json.dumps({"probe_often": 1.0})},
            workers=[{"polling_interval": 0.2}],
        ).until_up()
        until_told(supervisor, f"{DEAF}: a pooler is in between")
        assert "Polling every 0.2 s instead" in supervisor.log
        for _ in range(3):
            picked_up_within(AT_ONCE, supervisor)
        # Tried again and again, and told once.
        until_told(supervisor, f"DEBUG {DEAF}", times=2)
        assert supervisor.log.count(f"WARNING {DEAF}") == 1
        assert HEARD not in supervisor.log
        # The next user of such a session would receive, and keep, what it never wanted.
        assert listening_sessions() == 0
        stop(supervisor)


def listening_sessions():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
            " AND datname = current_database()"
        )
        return cursor.fetchone()[0]


@pytest.mark.usefixtures("on_postgresql")
def test_it_can_be_switched_off(supervised):
    supervisor = supervised(notifications=False).until_up()
    picked_up_within(AT_ONCE, supervisor)
    assert HEARD not in supervisor.log
    assert DEAF not in supervisor.log
    stop(supervisor)


# ── What an idle supervisor costs ──────────────────────────────────────────────

DEFAULTS = {
    "process_heartbeat_interval": 60,
    "process_alive_threshold": 300,
    "workers": None,
    "dispatchers": None,
}


@pytest.mark.usefixtures("on_postgresql")
def test_an_idle_supervisor_sends_at_most_two_statements_a_second(supervised, server):
    """With the defaults, notifications and a scheduler."""
    supervisor = supervised(
        settings={**server.settings, "with_other": True},
        **DEFAULTS,
        task_modules=[*MODULES, "tests.testapp.recurring_tasks"],
    ).until_up()
    until_told(supervisor, HEARD)
    picked_up_within(AT_ONCE, supervisor)
    time.sleep(1)  # what is measured is how little it does when it has come to rest
    with statement_count(server) as count:
        time.sleep(IDLE_SECONDS)
    print(f"idle: {count.number / IDLE_SECONDS:.2f} statements/s")  # noqa: T201
    assert count.number <= 2 * IDLE_SECONDS
    stop(supervisor)


def test_without_news_a_poll_is_one_statement(supervised, server):
    supervisor = supervised(
        settings=server.settings,
        **{
            **DEFAULTS,
            "notifications": False,
            "dispatchers": [],
            "workers": [{"polling_interval": 0.1}],
        },
    ).until_up()
    time.sleep(1)
    begun = time.monotonic()
    with statement_count(server) as count:
        time.sleep(5)
    polls = (time.monotonic() - begun) / 0.1
    print(f"idle: {count.number} statements in {polls:.0f} polls")  # noqa: T201
    # A quarter more is the jitter at its worst, and a heartbeat is four.
    assert count.number <= polls * 4 / 3 + 4
    stop(supervisor)
