#!/usr/bin/env python
"""The commands of the example project: see example_project/README.md."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
