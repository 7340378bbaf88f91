"""What processes are called in ``ps``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from robust_queue.configuration import ConfigurationOptions, WorkerConfiguration
from robust_queue.processes.posts import posts
from robust_queue.processes.titles import title_of

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")

SHOWN = "robust_queue: worker * (3 threads)"
SHOW = f"""
import os, sys
{{before}}
from robust_queue.processes.titles import show
show({SHOWN!r})
print(open(f"/proc/{{{{os.getpid()}}}}/cmdline").read().split(chr(0))[0])
"""


def command_line_after(before=""):
    """How a process of its own is listed once it has shown its title."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW.format(before=before)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("kind", "details", "title"),
    [
        ("Supervisor", {"database": "default"}, "supervisor (default)"),
        ("Worker", {"queues": ["*"], "threads": 3}, "worker * (3 threads)"),
        ("Worker", {"queues": ["a", "b*"], "threads": 1}, "worker a,b* (1 thread)"),
        (
            "Worker",
            {"queues": ["*"], "threads": 2, "coroutines": 200},
            "worker * (2 threads, 200 coroutines)",
        ),
        (
            "Worker",
            {"queues": ["*"], "threads": 2, "coroutines": 0},
            "worker * (2 threads)",
        ),
        ("Dispatcher", {"batch_size": 500, "polling_interval": 1.0}, "dispatcher"),
        ("Scheduler", {"recurring_tasks": ["a", "b"]}, "scheduler (2 tasks)"),
    ],
)
def test_a_title_tells_what_a_process_does(kind, details, title):
    assert title_of(kind, details) == f"robust_queue: {title}"


def test_what_workers_tell_of_themselves_makes_a_title():
    options = ConfigurationOptions(
        workers=[WorkerConfiguration(queues=["mail"], threads=5)]
    )
    assert [
        title_of(post.kind, json.loads(post.metadata))
        for post in posts("default", options, [])
    ] == [
        "robust_queue: worker mail (5 threads, 100 coroutines)",
        "robust_queue: dispatcher",
    ]


@on_linux
def test_it_is_shown_where_processes_are_listed():
    assert command_line_after() == SHOWN


@on_linux
def test_without_the_package_nothing_happens():
    missing = "sys.modules['setproctitle'] = None"
    assert command_line_after(missing) == sys.executable


@on_linux
def test_nothing_is_shown_on_macos():
    elsewhere = "sys.platform = 'darwin'"
    assert command_line_after(elsewhere) == sys.executable
