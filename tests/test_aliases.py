"""Which aliases of TASKS are Robust Queue's, and what holds for each."""

import pytest
from django.test import override_settings

from robust_queue import aliases
from robust_queue.backend import RobustQueueBackend
from robust_queue.compat import task_backends
from robust_queue.rules import PriorityOrder

OURS = "robust_queue.backend.RobustQueueBackend"
DERIVED = f"{__name__}.DerivedBackend"


class DerivedBackend(RobustQueueBackend):
    """A project may extend the backend."""


SEVERAL = override_settings(
    TASKS={
        "dummy": {"BACKEND": "django_tasks.backends.dummy.DummyBackend"},
        "mail": {"BACKEND": OURS, "OPTIONS": {"DATABASE": "other"}},
        "default": {"BACKEND": OURS, "OPTIONS": {"PRIORITY_ORDER": "largest_first"}},
        "derived": {"BACKEND": DERIVED, "OPTIONS": {"DATABASE": "other"}},
    }
)


def names(backends):
    return [each.alias for each in backends]


@SEVERAL
def test_ours_are_told_in_the_order_of_tasks():
    assert names(aliases.backends()) == ["mail", "default", "derived"]


@SEVERAL
def test_those_of_a_database():
    assert names(aliases.backends_of("default")) == ["default"]
    assert names(aliases.backends_of("other")) == ["mail", "derived"]
    assert aliases.backends_of("nowhere") == []


@SEVERAL
@pytest.mark.parametrize(
    ("alias", "database"),
    [("dummy", None), ("mail", "other"), ("default", "default"), ("derived", "other")],
)
def test_the_database_of_a_backend(alias, database):
    assert aliases.database_of(task_backends[alias]) == database


@SEVERAL
def test_the_options_of_an_alias_or_the_defaults_if_it_is_gone():
    order = aliases.options_of("default").priority_order
    assert order is PriorityOrder.LARGEST_FIRST
    order = aliases.options_of("gone").priority_order
    assert order is PriorityOrder.SMALLEST_FIRST
