"""Where Robust Queue departs from Django's tests: one table, each row with a reason."""

import sys
from dataclasses import dataclass
from enum import Enum, auto

import django

from tests.conformance import names

BEFORE_61 = django.VERSION < (6, 1)
IS_60 = django.VERSION[:2] == (6, 0)


class How(Enum):
    """What is done with a test that cannot run as it stands."""

    ADAPTED = auto()  # rewritten such that it still claims the same
    LEFT_OUT = auto()  # run all the same, to see that it cannot pass


@dataclass(frozen=True, slots=True)
class Departure:
    """Tests that cannot run as they stand, and why."""

    how: How
    tests: tuple[str, ...]
    reason: str
    applies: bool = True


TABLE = (
    Departure(
        How.ADAPTED,
        (
            "TaskTestCase.test_enqueue_task_async",
            "TaskTestCase.test_refresh_result",
            "DummyBackendTestCase.test_enqueue_task_async",
        ),
        "Reads results in an event loop, where Django forbids queries: in a thread.",
    ),
    Departure(
        How.ADAPTED,
        (
            "DummyBackendTestCase.test_refresh_result",
            "DummyBackendTestCase.test_refresh_result_async",
        ),
        "Changes a result in memory, where no job is: the job is run instead.",
    ),
    Departure(
        How.LEFT_OUT,
        ("ImmediateBackendTestCase.test_cannot_get_result",),
        "Results can be retrieved.",
    ),
    Departure(
        How.LEFT_OUT,
        ("ImmediateBackendTestCase.test_cannot_refresh_result",),
        "Results can be refreshed.",
    ),
    Departure(
        How.LEFT_OUT,
        ("ImmediateBackendTestCase.test_cannot_pass_run_after",),
        "Jobs can wait for a moment.",
    ),
    Departure(
        How.LEFT_OUT,
        (
            "TaskTestCase.test_pickle_task",
            "TaskTestCase.test_pickle_task_result",
            "TaskTestCase.test_unpickle_arbitrary_string",
            "TaskTestCase.test_unpickle_non_task_object",
        ),
        "Tasks can be pickled from Django 6.1 on.",
        applies=BEFORE_61,
    ),
    Departure(
        How.LEFT_OUT,
        ("TaskTestCase.test_run_after_in_decorator",),
        "Refused by every Django, but in these words from 6.1 on.",
        applies=BEFORE_61,
    ),
    Departure(
        How.LEFT_OUT,
        (
            "CustomTaskTestCase.test_custom_task_with_custom_values",
            "CustomTaskTestCase.test_custom_task_with_standard_and_custom_values",
        ),
        "The decorator of Django 6.0 passes no keywords on to the class of the task.",
        applies=IS_60,
    ),
    Departure(
        How.LEFT_OUT,
        ("CustomBackendTestCase.test_no_enqueue",),
        "Python has these words for an abstract class from 3.12 on.",
        applies=sys.version_info < (3, 12),
    ),
)

IN_FORCE = tuple(departure for departure in TABLE if departure.applies)
ADAPTED = {t for each in IN_FORCE if each.how is How.ADAPTED for t in each.tests}
LEFT_OUT = {t for each in IN_FORCE if each.how is How.LEFT_OUT for t in each.tests}
EXPECTED = tuple(name for name in names.ALL if name not in LEFT_OUT)
