"""Where the browser is: that of the system, Playwright's own is never downloaded.

Only the standard library is imported: `.ci/dev.py` loads this file before any
virtual environment exists.
"""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """Return the path of Chromium, or None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)
