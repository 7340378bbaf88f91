"""JSON values → Python values. Stored text is not trusted: it only names."""

from base64 import b64decode
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from enum import Enum, Flag
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist
from django.db import InterfaceError, OperationalError, connections
from django.utils.functional import Promise

from robust_queue.arguments import moments
from robust_queue.arguments.classes import enum_at, storable_at
from robust_queue.arguments.misfits import (
    MisfitError,
    Step,
    by_field,
    by_index,
    by_key,
    each,
    named,
)
from robust_queue.arguments.text import TAG, Json, Tag
from robust_queue.arguments.translations import Translation

if TYPE_CHECKING:
    from django.db.models import Model

# What reading a tag of the wrong shape raises.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def decode(node: Json) -> Any:
    """The value of a JSON value."""
    if type(node) is list:
        return each(decode, node, by_index)
    if type(node) is dict:
        return _decode_tag(node) if TAG in node else _decode_values(node, by_key)
    return node


def _decode_tag(tag: Tag) -> Any:
    try:
        decoder = _DECODERS[tag[TAG]]
    except (LookupError, TypeError) as cause:
        raise MisfitError(f"the tag {named(tag[TAG])} is not known.") from cause
    try:
        return decoder(tag)
    except MALFORMED as cause:
        raise MisfitError(f"the stored {tag[TAG]} is malformed: {cause}") from cause


def _decode_values(
    nodes: dict[str, Any], steps: Callable[[list[str]], Step]
) -> dict[str, Any]:
    values = each(decode, nodes.values(), steps([*nodes]))
    return dict(zip(nodes, values, strict=True))


def _decode_items(tag: Tag) -> list[Any]:
    if type(tag["items"]) is not list:
        raise TypeError("its items are not a list.")
    return each(decode, tag["items"], by_index)


def _decode_dict(tag: Tag) -> dict[Any, Any]:
    keys = [decode(key) for key, _ in tag["items"]]
    values = each(decode, [node for _, node in tag["items"]], by_key(keys))
    return dict(zip(keys, values, strict=True))


def _decode_text(tag: Tag) -> str:
    return "".join(tag["parts"])


def _decode_decimal(tag: Tag) -> Decimal:
    value = Decimal(tag["value"])
    if not value.is_finite():
        raise ValueError(f"{value} is not a number.")
    return value


def _decode_enum(tag: Tag) -> Enum:
    kind = enum_at(tag["module"], tag["class"])
    path = f"{tag['module']}.{tag['class']}"
    if kind is None:
        raise MisfitError(
            f"the enum {path} is not here. If it still exists, import it in the "
            "module that declares the task."
        )
    return _member(kind, tag, path)


def _member(kind: type[Enum], tag: Tag, path: str) -> Enum:
    try:
        # Combinations of flags need not have a name.
        if issubclass(kind, Flag):
            return kind(decode(tag["value"]))
        return kind.__members__[tag["name"]]
    except (LookupError, TypeError, ValueError) as cause:
        raise MisfitError(f"the enum {path} has no {named(tag['name'])}.") from cause


def _decode_dataclass(tag: Tag) -> Any:
    kind = storable_at(tag["class"])
    if kind is None:
        raise MisfitError(
            f"the dataclass {tag['class']} is not opted in here. If it still exists, "
            "import it in the module that declares the task."
        )
    _require_fields(kind, tag)
    value: Any = object.__new__(kind)
    for name, field in _decode_values(tag["fields"], by_field).items():
        # Past frozen classes and __post_init__: the fields are all there.
        object.__setattr__(value, name, field)
    return value


def _require_fields(kind: type, tag: Tag) -> None:
    changed = tag["fields"].keys() ^ {field.name for field in fields(kind)}
    if changed:
        raise MisfitError(
            f"the dataclass {tag['class']} has changed since: {sorted(changed)}."
        )


def _decode_model(tag: Tag) -> "Model":
    kind, alias = _model(tag["model"]), tag["database"]
    if alias is not None and alias not in connections:
        raise MisfitError(f"there is no database {named(alias)} for {tag['model']}.")
    (pk,) = each(decode, [tag["pk"]], by_field(["pk"]))
    return _row(kind, alias, pk)


def _model(label: str) -> "type[Model]":
    try:
        return apps.get_model(label)
    except (LookupError, ValueError) as cause:
        raise MisfitError(f"there is no model {named(label)}.") from cause


def _row(kind: "type[Model]", alias: str | None, pk: Any) -> "Model":
    sought = f"{kind._meta.label} with pk {named(pk)} in database {named(alias)}"
    try:
        return kind._base_manager.using(alias).get(pk=pk)
    except (InterfaceError, OperationalError):
        # An outage says nothing about the row: the caller may try again.
        raise
    except ObjectDoesNotExist as cause:
        raise MisfitError(f"there is no {sought} any more.") from cause
    except Exception as cause:
        raise MisfitError(f"the {sought} cannot be read: {cause}") from cause


def _decode_lazy(tag: Tag) -> Promise:
    arguments = _decode_values(tag["arguments"], by_field)
    return Translation(tag["function"], arguments).lazy()


_DECODERS: dict[str, Callable[[Tag], Any]] = {
    "str": _decode_text,
    "int": lambda tag: int(tag["hex"], 16),
    "dict": _decode_dict,
    "tuple": lambda tag: tuple(_decode_items(tag)),
    "set": lambda tag: set(_decode_items(tag)),
    "frozenset": lambda tag: frozenset(_decode_items(tag)),
    "datetime": moments.decode_datetime,
    "date": moments.decode_date,
    "time": moments.decode_time,
    "timedelta": moments.decode_timedelta,
    "uuid": lambda tag: UUID(tag["value"]),
    "decimal": _decode_decimal,
    "bytes": lambda tag: b64decode(tag["value"], validate=True),
    "enum": _decode_enum,
    "dataclass": _decode_dataclass,
    "model": _decode_model,
    "lazy": _decode_lazy,
}
