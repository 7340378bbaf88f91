"""External tasks for a test, forgotten behind it."""

import pytest

from robust_queue import recurrence, registry


@pytest.fixture
def forgetful(monkeypatch):
    """What a test declares is forgotten behind it."""
    monkeypatch.setattr(registry, "_declared", registry.discover())
    monkeypatch.setattr(recurrence, "_declared", list(recurrence._declared))
