"""``manage.py robust_queue``: runs the supervisor, or one of the verbs."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.db import Error

from robust_queue import doctor, logs
from robust_queue.aliases import database_to_serve
from robust_queue.configuration import current
from robust_queue.exceptions import NoQueueError
from robust_queue.management.choices import (
    Choices,
    add_choices,
    choices_of,
    chosen,
    configured,
)
from robust_queue.management.running import (
    NothingToRunError,
    Plan,
    rehearse,
    run,
)
from robust_queue.management.verbs import VERBS
from robust_queue.processes.pidfile import AlreadyRunningError
from robust_queue.sources import use


class Command(BaseCommand):
    help = (
        "Run workers, dispatchers and the scheduler of Robust Queue as ROBUST_QUEUE "
        "configures them, until stopped by Ctrl-C or a signal. With a verb: do that "
        "one thing and exit. Options stand before the verb, its own ones behind it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--database",
            metavar="ALIAS",
            help="the database whose queues to serve, where TASKS uses several",
        )
        parser.add_argument(
            "--pidfile",
            metavar="PATH",
            help="the file that keeps a second supervisor from starting; '' for none",
        )
        parser.add_argument(
            "--until-empty",
            action="store_true",
            help="stop when nothing is due, ready or running any more",
        )
        add_choices(parser)
        verbs = parser.add_subparsers(
            dest="verb", metavar="VERB", title="verbs", required=False
        )
        examine = verbs.add_parser("doctor", help="tell what looks wrong")
        examine.add_argument(
            "--deep",
            action="store_true",
            help="look at every row, and name each that breaks a guarantee",
        )
        for name, it in VERBS.items():
            it.add_arguments(verbs.add_parser(name, help=it.HELP))

    def execute(self, *args: Any, **options: Any) -> str | None:
        # Before anything else: the checks judge this configuration, not another one.
        with configured(options, os.environ):
            return super().execute(*args, **options)

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Run Django's checks, some of which ask some databases.

        One that is away must not keep a supervisor from starting: it waits for it.
        """
        try:
            super().check(*args, **kwargs)
        except Error as error:
            self.stderr.write(f"The checks could not be finished: {error}")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            database = database_to_serve(options["database"])
        except NoQueueError as error:
            raise CommandError(str(error)) from error
        match options["verb"]:
            case None:
                self._run(database, options)
            case "doctor":
                self._examine(database, deep=options["deep"])
            case verb:
                VERBS[verb].run(database, options, self.stdout)

    def _run(self, database: str, options: dict[str, Any]) -> None:
        choices = choices_of(options, os.environ)
        logs.show(options["verbosity"])
        with use(chosen(current(), choices)):
            try:
                code = self._start(_plan(database, choices), choices, options)
            except (AlreadyRunningError, NothingToRunError, OSError) as error:
                raise CommandError(str(error)) from error
        if code:
            sys.exit(code)

    def _start(self, plan: Plan, choices: Choices, options: dict[str, Any]) -> int:
        if choices.dry_run:
            return rehearse(plan, write=self.stdout.write)
        given = options["pidfile"]
        return run(
            plan,
            pidfile=current().supervisor_pidfile if given is None else given,
            until_empty=options["until_empty"],
            write=self.stdout.write,
        )

    def _examine(self, database: str, *, deep: bool) -> None:
        findings = doctor.examine(database, deep=deep)
        for finding in findings:
            self.stdout.write(str(finding))
        if any(finding.severity == "problem" for finding in findings):
            raise CommandError("Not everything is as it should be.")
        if not findings:
            self.stdout.write("Everything is as it should be.")


def _plan(database: str, choices: Choices) -> Plan:
    return Plan(
        database=database,
        recurring=choices.runs_scheduler,
        reloads=settings.DEBUG if choices.reload is None else choices.reload,
    )
