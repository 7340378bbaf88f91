"""The timetable: recurring tasks that stand in the settings instead of the code.

Only their form is judged here. Whether a schedule makes sense and a task exists is told
when tasks can be looked up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import timedelta
from typing import Annotated, Any, NamedTuple

from robust_queue.exceptions import ConfigurationError
from robust_queue.rules import Problems, Rule, form_problems, normalise, senseless

# Of those that were missed, so many are made up for unless something else is said.
MISSED_LIMIT = 100


def _is_path(value: Any) -> bool:
    parts = value.split(".") if isinstance(value, str) else []
    return len(parts) > 1 and all(part.isidentifier() for part in parts)


def _anything(value: Any) -> bool:
    return True


_PATH = Rule("the dotted path of a task, such as 'shop.tasks.report'", _is_path)
_LIST = Rule("a list", lambda value: isinstance(value, list | tuple))
# It is judged together with the task, and in the same words as for @recurring.
_LATER = Rule("", _anything)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringTaskConfiguration:
    """What ``@recurring`` says above a task, and which task."""

    task: Annotated[str, _PATH]
    schedule: Annotated[str | timedelta, _LATER]
    args: Annotated[Sequence[Any], _LIST] = ()
    kwargs: Annotated[Mapping[str, Any] | None, _LATER] = None
    queue_name: Annotated[str | None, _LATER] = None
    priority: Annotated[int | None, _LATER] = None
    timezone: Annotated[str | None, _LATER] = None
    description: Annotated[str, _LATER] = ""
    enabled: Annotated[bool, _LATER] = True
    on_missed: Annotated[str, _LATER] = "run_once"
    missed_limit: Annotated[int, _LATER] = MISSED_LIMIT
    overlap: Annotated[str, _LATER] = "allow"
    jitter: Annotated[timedelta | float, _LATER] = 0

    def __post_init__(self) -> None:
        normalise(self)

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the task, as ``@recurring`` takes it."""
        names = (each.name for each in fields(self) if each.name != "task")
        return {name: getattr(self, name) for name in names}


class TimetableRule(NamedTuple):
    """The rule of a dict of keys, each with what recurs under it."""

    kind: type = RecurringTaskConfiguration

    def read(self, value: Any) -> dict[str, Any]:
        return {key: self._made(form) for key, form in value.items()}

    def _made(self, form: Any) -> Any:
        return form if isinstance(form, self.kind) else self.kind(**form)

    def problems(self, path: str, value: Any) -> Problems:
        if not isinstance(value, Mapping):
            yield senseless(path, value, "a dict of keys and what recurs under each")
            return
        for key, form in value.items():
            where = f"{path}[{key!r}]"
            yield from form_problems(where, form, self.kind)
            yield from self._missing(where, form)

    def _missing(self, path: str, form: Any) -> Problems:
        if not isinstance(form, Mapping):
            return
        for each in fields(self.kind):
            if each.default is MISSING and each.name not in form:
                yield ConfigurationError(
                    path, f"has no {each.name!r}.", f"Add {each.name!r} to it."
                )


Timetable = Annotated[Mapping[str, RecurringTaskConfiguration], TimetableRule()]
