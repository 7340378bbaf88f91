"""`manage.py demo`: a load for the shop, run by real supervisors and judged.

At the end the dashboard is open, until somebody presses Ctrl-C.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection

from example_project.shop import (
    clockwork,
    dashboard,
    demonstration,
    good_and_bad,
    tour,
)
from example_project.shop.dashboard import Dashboard
from example_project.shop.demonstration import Scene
from example_project.shop.supervising import running

SIGHTS = ("page", "status", "shows")
HEADINGS = ("task", "what it shows", "state", "result or error")
LONGEST = 60


class Command(BaseCommand):
    help = (
        "Enqueue a believable load in a fresh database, let real supervisors run it, "
        "kill a worker again and again, tell what happened, and fail unless all of it "
        "went as it should. Then have the dashboard open until Ctrl-C. With "
        "DEMO_EXIT=1 look at each of its pages instead, and end."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        # As Ctrl-C does: everything is stopped on the way out.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with _fresh_database() as folder:
                self._say("A fresh SQLite database is ready.")
                self._show_everything(folder)
        except KeyboardInterrupt:
            raise CommandError("Stopped before its end.", returncode=130) from None

    def _show_everything(self, folder: Path) -> None:
        promises = (
            self._show_the_shop(folder)
            | self._show_the_race(folder)
            | self._show_the_clockwork(folder)
        )
        with dashboard.opened(folder, self._say) as opened:
            if _ends_by_itself():
                promises |= self._show_around(opened)
            self._judge(promises)
            if not _ends_by_itself():
                self._stay_open(opened)

    def _show_around(self, opened: Dashboard) -> dict[str, bool]:
        self._say("Somebody logs in and looks at every page:\n")
        sights = tour.take(opened.visitor())
        self._show(SIGHTS, (sight.row for sight in sights))
        return {
            "Every page of the dashboard has something to show.": all(
                sight.is_worth_it for sight in sights
            )
        }

    def _stay_open(self, opened: Dashboard) -> None:
        self._say(opened.invitation)
        try:
            opened.stay_open()
        except KeyboardInterrupt:
            self._say("\nEverything is stopped ...")

    def _show_the_shop(self, folder: Path) -> dict[str, bool]:
        scenes = demonstration.enqueue_everything()
        demonstration.roll_back()
        self._say(
            f"{len(scenes)} tasks are enqueued, and one more in a transaction that was "
            "rolled back.\nmanage.py robust_queue --until-empty runs them:\n"
        )
        self._run_until_empty(folder / "shop.log")
        self._show(HEADINGS, map(_row, scenes))
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

    def _show(self, headings: Sequence[str], told: Iterable[Sequence[str]]) -> None:
        rows = [headings, *told]
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


def _ends_by_itself() -> bool:
    return os.environ.get("DEMO_EXIT", "") not in ("", "0")


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
