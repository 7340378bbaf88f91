"""A timetable of everything: each form of a schedule, each policy, many zones.

It is for one night. An hour after its beginning most of Europe puts its clocks forward,
Moldova has done so an hour before; two hours later Paraguay puts them back.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, repeat

from robust_queue.arguments import dump_call
from robust_queue.models import RecurringTask
from tests.testapp import timetabled_tasks
from tests.testapp.timetabled_tasks import at_once, tick, work, work_alone

NIGHT = datetime(2022, 3, 27, 0, 30, tzinfo=UTC)
TURN = datetime(2022, 3, 27, 1, tzinfo=UTC)
ZONES = [
    *("Europe/Berlin", "America/Asuncion", "Europe/London", "UTC", "Europe/Chisinau"),
    *("Antarctica/Troll", "Atlantic/Azores", "Asia/Kathmandu", "Europe/Athens"),
    *("America/New_York", "Australia/Lord_Howe"),
]
# How many there are of each among two hundred.
FORMS = [
    ("* * * * * *", 3),
    ("every 3 seconds", 3),
    ("*/5 * * * * *", 4),
    ("every 7 seconds", 4),
    ("every 15 seconds", 6),
    ("10,40 * * * * *", 10),
    ("* * * * *", 40),
    ("every 90 seconds", 15),
    ("*/2 * * * *", 20),
    ("*/5 1-3 * * *", 20),
    ("*/7 * * * *", 20),
    ("0,30 2 * * *", 15),
    ("30 2 * * *", 10),
    ("@hourly", 10),
    ("every 11 minutes", 10),
    ("15,45 0,1,3,23 * * *", 10),
]
# What others are changed to while schedulers run.
OTHERS = ["every 4 seconds", "*/20 * * * * *", "* * * * *", "45 */3 * * * *"]
POLICIES = ["run_once", "run_all", "skip"]
# Those that come more often would make more jobs than anybody gets through.
FIRST_WITH_WORK = 30
LONG = 1.2  # real seconds, which is more than a minute of the clocks
GONE = f"{timetabled_tasks.__name__}.gone"
# In the settings, for a scheduler that has nothing else of its own.
FAR = {"far": {"task": tick.module_path, "schedule": "@yearly", "args": ["far"]}}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One of the recurring tasks, and what the test has in mind for it."""

    key: str
    task: object = tick
    options: dict
    # In the settings, rather than made at run time.
    static: bool
    # Does anybody change it meanwhile?
    edited: bool
    # Its task has gone since it was made.
    refused: bool = False


def timetable(every=1):
    """Two hundred lines, or every so manieth of them."""
    schedules = chain.from_iterable(repeat(text, n) for text, n in FORMS)
    lines = [_line(n, schedule) for n, schedule in enumerate(schedules)]
    return lines[::every]


def in_settings(line):
    """How ROBUST_QUEUE says it."""
    return {"task": line.task.module_path, "args": [line.key], **line.options}


def _line(n, schedule):
    task, overlap, refused = _task(n)
    options = {
        "schedule": schedule,
        "timezone": ZONES[n % len(ZONES)],
        "on_missed": POLICIES[n % len(POLICIES)],
        "missed_limit": 100 if n % 2 else 7,
        "overlap": overlap,
        "jitter": 20 if n % 9 == 5 and task is tick else 0,
        "kwargs": {"seconds": LONG} if task in (work, work_alone) else {},
    }
    static = n % 5 == 4 and not refused
    return Line(
        key=f"{n:03} {schedule}",
        task=task,
        options=options,
        static=static,
        edited=n % 4 == 1 and task is tick and not static and not refused,
        refused=refused,
    )


def _task(n):
    """Which one, what becomes of overlapping runs, and whether it has gone."""
    if n >= FIRST_WITH_WORK:
        match n % 25:
            case 3 | 11:
                return work, "skip", False
            case 7 | 19:
                return work, "queue", False
            case 14:
                return work_alone, "allow", False
            case 20:
                return at_once, "allow", False
            case 23:
                return tick, "allow", True
    return tick, "allow", False


def many(number, task, *, schedule, next_run_at):
    """So many schedules made at run time, without asking for each of them."""
    RecurringTask.objects.bulk_create(
        (
            RecurringTask(
                key=f"k{n}",
                task_path=task.module_path,
                schedule=schedule,
                arguments=dump_call((n,), {}),
                static=False,
                next_run_at=next_run_at,
            )
            for n in range(number)
        ),
        batch_size=1000,
    )
