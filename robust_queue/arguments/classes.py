"""The classes that stored text may name. Nothing here imports by name."""

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum, EnumType
from types import ModuleType
from typing import Any, TypeVar

C = TypeVar("C", bound=type)

_storable: dict[str, type] = {}


def storable(cls: C) -> C:
    """Let instances of a dataclass be arguments and return values of tasks."""
    # In its own __dict__: a subclass that is no dataclass would lose its attributes.
    if not (isinstance(cls, type) and "__dataclass_fields__" in vars(cls)):
        raise TypeError(
            f"{cls!r} is not a dataclass. Put @storable above @dataclass, on a class."
        )
    # Refuses subclasses of list, Exception …: their contents are not in the fields.
    object.__new__(cls)
    _storable[path_of(cls)] = cls
    return cls


def path_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def is_storable(cls: type) -> bool:
    return is_dataclass(cls) and _storable.get(path_of(cls)) is cls


def storable_at(path: str) -> type | None:
    return _storable.get(path)


def enum_at(module: str, qualname: str) -> type[Enum] | None:
    """The enum of that name, if its module is imported already."""
    owner: Any = sys.modules.get(module)
    for name in qualname.split("."):
        owner = _namespace(owner).get(name)
    return owner if issubclass(type(owner), EnumType) else None


def _namespace(owner: Any) -> Mapping[str, Any]:
    # The type says what something is and object what it has: isinstance() and
    # getattr() may evaluate a lazy object, or load a lazy module.
    if issubclass(type(owner), ModuleType | type):
        return object.__getattribute__(owner, "__dict__")  # type: ignore[no-any-return]
    return {}
