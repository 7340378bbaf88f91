"""What one process is asked for: by options, else by variables of the environment."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, cast

from django.core.management import CommandError
from django.utils.module_loading import import_string

from robust_queue.configuration import ConfigurationOptions, WorkerConfiguration
from robust_queue.exceptions import ConfigurationError
from robust_queue.rules import Rule, RunMode, rules_of
from robust_queue.sources import use

Options = Mapping[str, Any]
Environment = Mapping[str, str]


class Role(StrEnum):
    """What a supervisor may be asked to run."""

    WORKERS = "workers"
    DISPATCHERS = "dispatchers"
    SCHEDULER = "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What an operator asks of one supervisor. The rest is left to the settings."""

    mode: RunMode | None = None
    only: frozenset[Role] = frozenset(Role)
    skip_recurring: bool = False
    queues: Sequence[str] | None = None
    threads: int | None = None
    reload: bool | None = None
    dry_run: bool = False

    @property
    def runs_scheduler(self) -> bool:
        return Role.SCHEDULER in self.only and not self.skip_recurring


def add_choices(parser: ArgumentParser) -> None:
    """Offer the options, each of which has a variable as well."""
    parser.add_argument(
        "--config",
        metavar="DOTTED.PATH",
        help="what to use in place of the setting ROBUST_QUEUE: a "
        "ConfigurationOptions, a dict, or a function that returns one",
    )
    group = parser.add_argument_group("what this supervisor runs", _PRECEDENCE)
    group.add_argument(
        "--mode",
        metavar="fork|async",
        help="processes of their own, or threads of one process",
    )
    group.add_argument(
        "--only",
        action="append",
        metavar="|".join(Role),
        help="run nothing else; may be given several times",
    )
    group.add_argument(
        "--skip-recurring",
        action="store_const",
        const=True,
        help="run no scheduler here: recurring tasks are left to others",
    )
    group.add_argument(
        "--queues",
        metavar="NAME,PREFIX*",
        help="run one worker, for these queues, in place of those configured",
    )
    group.add_argument(
        "--threads", metavar="N", help="how many threads each worker runs tasks in"
    )
    group.add_argument(
        "--reload",
        action="store_const",
        const=True,
        help="start anew when code changes, once running tasks have finished; on "
        "where DEBUG is",
    )
    group.add_argument(
        "--no-reload", action="store_const", const=False, dest="reload", help="do not"
    )
    group.add_argument(
        "--dry-run",
        action="store_const",
        const=True,
        help="load everything, tell what would run, and exit",
    )


_PRECEDENCE = (
    "An option outranks its variable in the environment, such as ROBUST_QUEUE_THREADS "
    "for --threads, and that outranks the settings."
)


def configured(
    options: Options, environment: Environment
) -> AbstractContextManager[None]:
    """For the block, put what ``--config`` names in the place of the setting."""
    asked = _asked("config", options, environment)
    if asked is None:
        return nullcontext()
    return use(_loaded(*asked), place=asked[1])


def choices_of(options: Options, environment: Environment) -> Choices:
    """What was asked for; refuses what makes no sense."""
    found = {name: _read(name, options, environment) for name in _RULES}
    return Choices(**{name: it for name, it in found.items() if it is not None})


def chosen(options: ConfigurationOptions, choices: Choices) -> ConfigurationOptions:
    """The configuration as it holds for a supervisor that was asked for this."""
    workers = options.effective_workers if Role.WORKERS in choices.only else ()
    dispatchers = options.effective_dispatchers
    return replace(
        options,
        mode=choices.mode or options.mode,
        workers=_workers(workers, choices),
        dispatchers=dispatchers if Role.DISPATCHERS in choices.only else (),
    )


def _workers(
    workers: Sequence[WorkerConfiguration], choices: Choices
) -> Sequence[WorkerConfiguration]:
    if choices.queues and Role.WORKERS in choices.only:
        first, *_ = (*workers, WorkerConfiguration())
        workers = (replace(first, queues=choices.queues),)
    if choices.threads:
        workers = [replace(each, threads=choices.threads) for each in workers]
    return workers


# ── Reading ────────────────────────────────────────────────────────────────────


def _read(name: str, options: Options, environment: Environment) -> Any:
    asked = _asked(name, options, environment)
    if asked is None:
        return None
    path, value = asked
    for problem in _RULES[name].problems(path, value):
        raise _refusal(problem)
    return _RULES[name].read(value)


def _asked(
    name: str, options: Options, environment: Environment
) -> tuple[str, Any] | None:
    """What was asked for and where; None if nobody has."""
    variable = f"ROBUST_QUEUE_{name.upper()}"
    if options.get(name) is not None:
        return f"--{name.replace('_', '-')}", options[name]
    # An empty variable is how some tools say that there is none.
    return (variable, environment[variable]) if environment.get(variable) else None


def _loaded(path: str, dotted: str) -> Any:
    try:
        found = import_string(dotted)
        found = found() if callable(found) else found
    except Exception as error:
        # Whatever the module, or the function, may raise.
        problem = f"is {dotted!r}, which cannot be used: {error!r}"
        raise _refusal(ConfigurationError(path, problem)) from error
    if not isinstance(found, Mapping | ConfigurationOptions):
        problem = f"is {dotted!r}, which is {found!r}."
        cure = "It must be a ConfigurationOptions, a dict, or a function for one."
        raise _refusal(ConfigurationError(path, problem, cure))
    return found


def _refusal(problem: ConfigurationError) -> CommandError:
    text = f"{problem.path} {problem.problem} {problem.cure}".rstrip()
    return CommandError(text, returncode=2)


def _parts(value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    return [part.strip() for text in texts for part in text.split(",")]


def _roles(value: Any) -> frozenset[Role]:
    return frozenset(map(Role, _parts(value)))


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) else value


def _switch(value: Any) -> Any:
    return _SWITCHES.get(value.lower()) if isinstance(value, str) else value


def _match_some_queue(patterns: Sequence[str]) -> bool:
    are_names = _OF_QUEUES.accepts(patterns)
    return are_names and not WorkerConfiguration(queues=patterns).ignored_patterns


_SWITCHES = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_OF_MODE = cast(Rule, rules_of(ConfigurationOptions)["mode"])
_OF_QUEUES = cast(Rule, rules_of(WorkerConfiguration)["queues"])
_OF_THREADS = cast(Rule, rules_of(WorkerConfiguration)["threads"])
_OF_FLAGS = cast(Rule, rules_of(ConfigurationOptions)["enqueue_on_commit"])

# What the rules of the settings accept, written as text.
_SWITCH = Rule(f"one of {', '.join(_SWITCHES)}", _OF_FLAGS.accepts, _switch)
_RULES = {
    "mode": _OF_MODE,
    "only": Rule("workers, dispatchers or scheduler, or several", bool, _roles),
    "skip_recurring": _SWITCH,
    "queues": Rule(
        "names of queues with commas between; a * may stand only at the end of a name",
        _match_some_queue,
        _parts,
    ),
    "threads": _OF_THREADS._replace(convert=_number),
    "reload": _SWITCH,
    "dry_run": _SWITCH,
}
