"""Policies in the settings: what holds for tasks that do not say otherwise."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from robust_queue.compat import InvalidTask
from robust_queue.exceptions import ConfigurationError
from robust_queue.policies import NAMES, Policy
from robust_queue.policy_readers import checked
from robust_queue.rules import Problems, senseless, unknown


class Policies(NamedTuple):
    """The rule of what holds for tasks that do not say otherwise, or of a queue."""

    by_queue: bool = False

    def read(self, value: Any) -> Any:
        if self.by_queue:
            return {name: self._made(each) for name, each in value.items()}
        return self._made(value)

    def problems(self, path: str, value: Any) -> Problems:
        if not self.by_queue:
            yield from self._problems_of_one(path, value)
        elif not isinstance(value, Mapping):
            yield senseless(path, value, "a dict of queues and what holds for each")
        else:
            for name, each in value.items():
                yield from self._problems_of_one(f"{path}[{name!r}]", each)

    def _made(self, value: Any) -> Policy:
        return value if isinstance(value, Policy) else Policy(**checked(value))

    def _problems_of_one(self, path: str, value: Any) -> Problems:
        if isinstance(value, Policy):
            return
        if not isinstance(value, Mapping):
            yield senseless(path, value, "a dict of policies, such as max_attempts")
            return
        for name, each in value.items():
            where = f"{path}[{name!r}]"
            if name not in NAMES:
                yield unknown(where, name, NAMES)
                continue
            try:
                checked({name: each})
            except InvalidTask as error:
                yield ConfigurationError(where, f"is {each!r}.", str(error))


TaskDefaults = Annotated[Policy, Policies()]
QueueDefaults = Annotated[Mapping[str, Policy], Policies(by_queue=True)]
