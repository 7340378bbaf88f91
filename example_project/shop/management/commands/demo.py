"""`manage.py demo`: a load for the shop, run in this process and judged."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection

from example_project.shop import demonstration
from example_project.shop.demonstration import Scene

HEADINGS = ("task", "what it shows", "state", "result or error")


class Command(BaseCommand):
    help = (
        "Enqueue a believable load in a fresh database, run it in this process, tell "
        "what happened, and fail unless all of it went as it should."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with _fresh_database():
            self._say("A fresh SQLite database is ready.")
            scenes = demonstration.enqueue_everything()
            demonstration.roll_back()
            self._say(
                f"{len(scenes)} tasks are enqueued, and one more in a transaction that "
                "was rolled back. Running them in this process ..."
            )
            demonstration.run_everything()
            self._show(scenes)
            self._judge(demonstration.promises(scenes))

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)

    def _show(self, scenes: Sequence[Scene]) -> None:
        rows = [HEADINGS, *map(_row, scenes)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        self._say("")
        for row in rows:
            self._say("  ".join(map(str.ljust, row, widths)).rstrip())
        self._say("")

    def _judge(self, promises: dict[str, bool]) -> None:
        for promise, is_kept in promises.items():
            verdict = self.style.SUCCESS("yes") if is_kept else self.style.ERROR("NO ")
            self._say(f"{verdict}  {promise}")
        if not all(promises.values()):
            raise CommandError("Not everything went as it should.")
        self._say("\nAll of it went as it should.")


def _row(scene: Scene) -> tuple[str, str, str, str]:
    return scene.result.task.name, scene.shows, scene.job.state, scene.outcome


@contextmanager
def _fresh_database() -> Iterator[None]:
    """Turn the connection to a new file for the block, as a test run would."""
    usual = connection.settings_dict["NAME"]
    with TemporaryDirectory(prefix="robust-queue-demo-") as folder:
        _switch_to(Path(folder) / "demo.sqlite3")
        try:
            call_command("migrate", verbosity=0)
            yield
        finally:
            _switch_to(usual)


def _switch_to(name: Path | str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
