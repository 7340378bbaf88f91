"""Lazy translations as the name of a function and its arguments."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from django.utils import translation
from django.utils.functional import Promise


class Translation(NamedTuple):
    """A call of a translation function that is still to be made."""

    function: str
    arguments: Mapping[str, Any]

    def is_valid(self) -> bool:
        return self.arguments.keys() == {*_PARAMETERS[self.function]} and all(
            isinstance(value, _NUMBER if name == "number" else str)
            for name, value in self.arguments.items()
        )

    def lazy(self) -> Promise:
        """The lazy text; LookupError or ValueError if there is no such call."""
        if not self.is_valid():
            raise ValueError(f"{self.function}() does not take {[*self.arguments]}.")
        make: Callable[..., Promise] = getattr(translation, f"{self.function}_lazy")
        return make(**self.arguments)


def translation_of(lazy: Promise) -> Translation | None:
    """The translation that a lazy text will make, if it is one."""
    match lazy.__reduce__():
        case (_, (function, tuple() as args, dict() as kwargs, *_)):
            return _called(function, args, kwargs)
        case (_, (function, _, number, dict() as kwargs)):
            # The number is known only when the text is formatted.
            return _called(function, (), kwargs | {"number": number})
    return None


def evaluated(lazy: Promise) -> Any:
    """What a lazy value stands for."""
    match lazy.__reduce__():
        case (_, (function, tuple() as args, dict() as kwargs, *_)):
            return function(*args, **kwargs)
    return str(lazy)


def _called(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Translation | None:
    for name, parameters in _PARAMETERS.items():
        if function is getattr(translation, name):
            arguments = dict(zip(parameters, args, strict=False)) | kwargs
            found = Translation(name, arguments)
            return found if found.is_valid() else None
    return None


_NUMBER = (int, str, type(None))
_PARAMETERS = {
    "gettext": ("message",),
    "pgettext": ("context", "message"),
    "ngettext": ("singular", "plural", "number"),
    "npgettext": ("context", "singular", "plural", "number"),
}
