"""One step of a measurement, in a process of its own.

`python -m benchmarks.systems SYSTEM COMMAND [NUMBER ...]`, with the address of the
database in the environment (see base.py); prints one line of JSON.
"""

import json
import sys

from benchmarks.systems import load


def main() -> None:
    """Run one command of one system, and print what it returned."""
    name, command, *arguments = sys.argv[1:]
    system = load(name)()
    with system:
        result = getattr(system, f"command_{command}")(*map(int, arguments))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
