"""Memory: how much of it this process has in use."""

import os
import resource
import sys
from pathlib import Path

PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


def rss() -> int:
    """Bytes of memory that this process has in use; where unknown, ever had."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_SIZE
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
