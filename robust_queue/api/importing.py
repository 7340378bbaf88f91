"""Whether to judge a value means to import what it names: nobody may ask for that."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ImportString, TypeAdapter


def imports(judge: TypeAdapter[Any]) -> bool:
    """Is anything in this type, however deep, imported by its name?"""
    return any(part is _IMPORT for part in _parts(judge.core_schema))


def _parts(schema: Any) -> Iterator[Any]:
    """All that a type is made of, as pydantic has it."""
    seen, left = set[int](), [schema]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Mapping):
            left.extend(part.values())
        elif isinstance(part, list | tuple):
            left.extend(part)


def _importer() -> Any:
    known: Any = TypeAdapter(ImportString).core_schema
    return known["function"]["function"]


# What pydantic calls for every value of that type, wherever it stands.
_IMPORT = _importer()
