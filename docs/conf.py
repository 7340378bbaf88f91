"""Configuration of Sphinx: `make docs` builds the pages."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from robust_queue import __version__  # noqa: E402 (the checkout comes first)

project = "Robust Queue"
author = "The Robust Queue contributors"
copyright = author  # noqa: A001 (the name that Sphinx reads)
version = release = __version__

extensions = ["myst_parser", "docs.http_api"]
exclude_patterns = ["_build"]
nitpicky = True

# No intersphinx: a build needs no network.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# A page and the target above its heading share a name, and mean the same place.
suppress_warnings = ["myst.xref_ambiguous"]

html_theme = "furo"
html_title = f"Robust Queue {version}"
