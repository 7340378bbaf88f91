"""What every developer command shares: the folders, the services, the strictness."""

import importlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venv"
CACHE = ROOT / ".cache"

# The checkout is not installed into the interpreter that runs this script.
sys.path.append(str(ROOT))
services = importlib.import_module("tests.services")
private_servers = importlib.import_module("tests.private_servers")
chromium = importlib.import_module("tests.browser.chromium")


class DevError(Exception):
    """A command cannot go on; the message is one clear line for the person."""


def is_set(variable: str) -> bool:
    """Tell whether an environment variable is switched on."""
    return os.environ.get(variable, "").lower() not in {"", "0", "false", "no"}


def leave_out(what: str) -> None:
    """Say what will not be run; refuse to leave anything out in CI."""
    if is_set("CI") or is_set("RQ_STRICT"):
        raise DevError(f"{what} Nothing may be left out while CI or RQ_STRICT is set.")
    print(f"Left out: {what}", flush=True)
