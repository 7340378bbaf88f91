"""What tasks have told in a file: see tests/testapp/witnessed_tasks.py."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from tests.testapp.witnessed_tasks import VARIABLE


@dataclass(slots=True)
class Execution:
    """One run of a task, from its own mouth."""

    label: str
    pid: int
    begun: float
    ended: float | None = None


class Witness:
    """Reads what was told; `environment` and `options` make supervisors tell it."""

    options = {
        "task_modules": [
            "tests.testapp.witnessed_tasks",
            "tests.testapp.limited_tasks",
        ]
    }

    def __init__(self, folder):
        self.path = Path(folder) / "witness"

    @property
    def environment(self):
        return {VARIABLE: str(self.path)}

    def let_hurry(self):
        """From now on, what takes long begins and is over."""
        Path(f"{self.path}.hurry").touch()

    def let_exit(self):
        """Now those end their process that wait for it."""
        Path(f"{self.path}.exit").touch()

    def events(self):
        """Event, label, process and moment, in the order in which they were told."""
        if not self.path.exists():
            return []
        lines = self.path.read_text().splitlines()
        return [line.split(" ") for line in lines]

    def count(self, event):
        """How often each label has told this."""
        return Counter(label for told, label, *_ in self.events() if told == event)

    def has(self, event, *labels):
        """Have all of these told it?"""
        told = self.count(event)
        return all(told[label] for label in labels)

    def executions(self):
        """Every run of every label."""
        found, open_ones = defaultdict(list), {}
        for event, label, pid, moment in self.events():
            key = label, int(pid)
            if event == "begins":
                open_ones[key] = Execution(label, int(pid), float(moment))
                found[label].append(open_ones[key])
            elif event == "ends":
                open_ones.pop(key).ended = float(moment)
        return found
