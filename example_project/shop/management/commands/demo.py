"""`manage.py demo`: a load for the shop, run by real supervisors and judged."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection

from example_project.shop import clockwork, demonstration, good_and_bad
from example_project.shop.demonstration import Scene
from example_project.shop.supervising import running

HEADINGS = ("task", "what it shows", "state", "result or error")
LONGEST = 60


class Command(BaseCommand):
    help = (
        "Enqueue a believable load in a fresh database, let real supervisors run it, "
        "kill a worker again and again, tell what happened, and fail unless all of it "
        "went as it should."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        with _fresh_database() as folder:
            self._say("A fresh SQLite database is ready.")
            self._judge(
                self._show_the_shop(folder)
                | self._show_the_race(folder)
                | self._show_the_clockwork(folder)
            )

    def _show_the_shop(self, folder: Path) -> dict[str, bool]:
        scenes = demonstration.enqueue_everything()
        demonstration.roll_back()
        self._say(
            f"{len(scenes)} tasks are enqueued, and one more in a transaction that was "
            "rolled back.\nmanage.py robust_queue --until-empty runs them:\n"
        )
        self._run_until_empty(folder / "shop.log")
        self._show(scenes)
        return demonstration.promises(scenes)

    def _run_until_empty(self, log: Path) -> None:
        # Twice: what is for later is not waited for, and is due by then.
        for _ in range(2):
            demonstration.wait_for_delayed()
            with running("--until-empty", log=log) as supervisor:
                code = supervisor.wait(LONGEST)
            if code:
                raise CommandError(f"Exit code {code}.\n{log.read_text()}")
        self._say(log.read_text())

    def _show_the_race(self, folder: Path) -> dict[str, bool]:
        self._say(
            f"{good_and_bad.PARCELS} parcels, a good worker and a bad one, which is "
            "killed again and again:\n"
        )
        return good_and_bad.pack_everything(folder, self._say)

    def _show_the_clockwork(self, folder: Path) -> dict[str, bool]:
        self._say(
            "\nA bell that is to strike every second, from now on, and two schedulers, "
            "of which one is killed:\n"
        )
        return clockwork.let_it_strike(folder, self._say)

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()

    def _show(self, scenes: Sequence[Scene]) -> None:
        rows = [HEADINGS, *map(_row, scenes)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            self._say("  ".join(map(str.ljust, row, widths)).rstrip())
        self._say("")

    def _judge(self, promises: dict[str, bool]) -> None:
        self._say("")
        for promise, is_kept in promises.items():
            verdict = self.style.SUCCESS("yes") if is_kept else self.style.ERROR("NO ")
            self._say(f"{verdict}  {promise}")
        if not all(promises.values()):
            raise CommandError("Not everything went as it should.")
        self._say("\nAll of it went as it should.")


def _row(scene: Scene) -> tuple[str, str, str, str]:
    return scene.result.task.name, scene.shows, scene.job.state, scene.outcome


@contextmanager
def _fresh_database() -> Iterator[Path]:
    """Turn to a new file for the block, here and in the processes started meanwhile."""
    usual = connection.settings_dict["NAME"]
    with TemporaryDirectory(prefix="robust-queue-demo-") as folder:
        path = Path(folder) / "demo.sqlite3"
        os.environ["SHOP_DATABASE"] = str(path)
        _switch_to(path)
        try:
            call_command("migrate", verbosity=0)
            yield Path(folder)
        finally:
            _switch_to(usual)
            del os.environ["SHOP_DATABASE"]


def _switch_to(name: Path | str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
