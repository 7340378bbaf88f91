"""What is said where an extra of the package is not installed."""

import subprocess
import sys

import pytest

# None there has Python look no further.
SCRIPT = """
import sys

sys.modules[{missing!r}] = None
try:
    import {wanted}
except ImportError as error:
    print(error)
    print(repr(error.__cause__))
"""


def told(wanted, missing):
    script = SCRIPT.format(wanted=wanted, missing=missing)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return ended.stdout.splitlines()


@pytest.mark.parametrize(
    ("wanted", "missing", "what", "extra"),
    [
        ("robust_queue.api.urls", "ninja", "The HTTP API", "api"),
        ("robust_queue.client", "httpx", "The client", "client"),
    ],
)
def test_the_extra_is_named(wanted, missing, what, extra):
    words, cause = told(wanted, missing)
    assert words == (
        f"{what} needs an extra: python -m pip install 'robust-queue[{extra}]'"
    )
    assert cause.startswith("ModuleNotFoundError")


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [("robust_queue.api.urls", "pydantic"), ("robust_queue.client", "idna")],
)
def test_what_an_extra_lacks_itself_is_not_taken_for_it(wanted, missing):
    (words, _) = told(wanted, missing)
    assert missing in words
    assert "extra" not in words
