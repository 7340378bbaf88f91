"""Python values → JSON values."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from django.utils.functional import LazyObject, Promise, empty

from robust_queue.arguments import moments
from robust_queue.arguments.classes import enum_at, is_storable, path_of
from robust_queue.arguments.misfits import (
    MisfitError,
    by_field,
    by_index,
    each,
    named,
)
from robust_queue.arguments.text import TAG, Json, to_text
from robust_queue.arguments.translations import evaluated, translation_of

if TYPE_CHECKING:
    from django.db.models import Model

DEPTH = 100

# Python refuses to write or read longer integers in decimal at its strictest setting
# (640 digits), and the reader's setting need not be the writer's.
_DECIMAL_BITS = 2048
# JSON would read two separate code units back as one character.
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_WITHIN_PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")

Encoder: TypeAlias = Callable[[Any, int], Json]


def encode(value: Any, room: int) -> Json:
    """The JSON of a value that may nest ``room`` levels deep."""
    kind = type(value)
    return (_ENCODERS.get(kind) or _encoder_for(kind))(value, room)


def enum_value(member: Enum, room: int) -> Json:
    """What shows an enum member to people, whatever its value is."""
    try:
        return encode(member.value, room)
    except MisfitError:
        return member.name


def unwrapped(lazy: "LazyObject[Any]") -> Any:
    """The object behind e.g. request.user."""
    if lazy._wrapped is empty:
        lazy._setup()
    return lazy._wrapped


def _encoder_for(kind: type) -> Encoder:
    if is_storable(kind):
        return _encode_dataclass
    for base, encoder in _BASES:
        if issubclass(kind, base):
            return encoder
    return _encode_model if _is_model(kind) else _refuse


def _is_model(kind: type) -> bool:
    # Settings may import this module, and models need settings.
    from django.db.models import Model  # noqa: PLC0415

    return issubclass(kind, Model)


def _encode_itself(value: Json, room: int) -> Json:
    return value


def _encode_text(value: str, room: int) -> Json:
    if value.isascii() or not _SURROGATE_PAIR.search(value):
        return value
    return {TAG: "str", "parts": [*_WITHIN_PAIR.split(value)]}


def _encode_int(value: int, room: int) -> Json:
    if value.bit_length() <= _DECIMAL_BITS:
        return value
    return {TAG: "int", "hex": f"{value:x}"}


def _encode_float(value: float, room: int) -> Json:
    if isfinite(value):
        return value
    raise MisfitError(f"{value} cannot be stored. Pass None or text instead.")


def _encode_list(value: Iterable[Any], room: int) -> Json:
    _require(room)
    return [*each(encode, value, by_index, room - 1)]


def _encode_dict(value: dict[Any, Any], room: int) -> Json:
    _require(room)
    nodes = _encode_values(value, room - 1)
    if _are_text(nodes) and TAG not in nodes and all(map(str.isascii, nodes)):
        return nodes
    keys = [_encode_named(" key", key, room - 1) for key in nodes]
    pairs = zip(keys, nodes.values(), strict=True)
    if _are_text(keys) and TAG not in keys:
        return dict(pairs)  # type: ignore[arg-type]
    return {TAG: "dict", "items": [[*pair] for pair in pairs]}


def _encode_values(value: dict[Any, Any], room: int) -> dict[Any, Json]:
    nodes: dict[Any, Json] = {}
    try:
        for key, item in value.items():
            nodes[key] = encode(item, room)
    except MisfitError as misfit:
        misfit.inside(f"[{named(key)}]")
        raise
    return nodes


def _are_text(keys: Iterable[Any]) -> bool:
    return {*map(type, keys)} <= {str}


def _encode_named(role: str, value: Any, room: int) -> Json:
    try:
        return encode(value, room)
    except MisfitError as misfit:
        misfit.inside(f"{role} {named(value)}")
        raise


def _require(room: int) -> None:
    if room < 1:
        raise MisfitError(
            f"nested more than {DEPTH} levels deep, or inside itself. Flatten it."
        )


def _encode_tuple(value: tuple[Any, ...], room: int) -> Json:
    return {TAG: "tuple", "items": _encode_list(value, room)}


def _encode_set(value: set[Any] | frozenset[Any], room: int) -> Json:
    _require(room)
    items = [_encode_named(" item", item, room - 1) for item in value]
    # The order of a set differs between processes; equal sets give equal text.
    return {TAG: type(value).__name__, "items": sorted(items, key=to_text)}


def _encode_uuid(value: UUID, room: int) -> Json:
    return {TAG: "uuid", "value": str(value)}


def _encode_decimal(value: Decimal, room: int) -> Json:
    if value.is_finite():
        return {TAG: "decimal", "value": str(value)}
    raise MisfitError(f"{value!r} cannot be stored. Pass None or text instead.")


def _encode_bytes(value: bytes, room: int) -> Json:
    return {TAG: "bytes", "value": b64encode(value).decode("ascii")}


def _encode_enum(value: Enum, room: int) -> Json:
    kind = type(value)
    if enum_at(kind.__module__, kind.__qualname__) is not kind:
        raise MisfitError(
            f"Unsupported type: {kind}. It cannot be found again as {path_of(kind)}: "
            "declare it at the top level of a module or of a class."
        )
    return {
        TAG: "enum",
        "module": kind.__module__,
        "class": kind.__qualname__,
        "name": value.name,
        "value": enum_value(value, room - 1),
    }


def _encode_dataclass(value: Any, room: int) -> Json:
    _require(room)
    names = [field.name for field in fields(value)]
    nodes = each(partial(_encode_field, value), names, by_field(names), room - 1)
    return {
        TAG: "dataclass",
        "class": path_of(type(value)),
        "fields": dict(zip(names, nodes, strict=True)),
    }


def _encode_field(value: Any, name: str, room: int) -> Json:
    try:
        field = getattr(value, name)
    except AttributeError as cause:
        raise MisfitError("this field has no value. Set it first.") from cause
    return encode(field, room)


def _encode_model(value: "Model", room: int) -> Json:
    meta, pk = value._meta, value.pk
    if value._state.adding or None in (pk if isinstance(pk, tuple) else (pk,)):
        raise MisfitError(
            f"this {meta.label} is not saved, so the task could not find it. "
            "Save it first, or pass its values."
        )
    (key,) = each(encode, [pk], by_field(["pk"]), room)
    return {
        TAG: "model",
        "model": meta.label_lower,
        "pk": key,
        "database": value._state.db,
    }


def _encode_lazy(value: Promise, room: int) -> Json:
    found = translation_of(value)
    if found is None:
        return encode(evaluated(value), room - 1)
    arguments = {name: encode(part, room) for name, part in found.arguments.items()}
    return {TAG: "lazy", "function": found.function, "arguments": arguments}


def _encode_unwrapped(value: "LazyObject[Any]", room: int) -> Json:
    return encode(unwrapped(value), room)


def _refuse(value: Any, room: int) -> Json:
    kind = type(value)
    raise MisfitError(f"Unsupported type: {kind}. {_cure(kind)}")


def _cure(kind: type) -> str:
    if is_dataclass(kind):
        return "Opt the dataclass in with @robust_queue.arguments.storable."
    for base in kind.__mro__[1:]:
        if base in _ENCODERS:
            return f"Pass a plain {base.__name__}, or an opted-in dataclass."
    for abstract, cure in _CURES:
        if issubclass(kind, abstract):
            return cure
    return "Pass plain data, or what the task needs to find or build it."


_CURES: tuple[tuple[Any, str], ...] = (
    ((bytearray, memoryview), "Pass bytes."),
    (Mapping, "Pass a plain dict."),
    (Iterable, "Pass a list of its items, or what the task needs to find them."),
)

_ENCODERS: dict[type, Encoder] = {
    NoneType: _encode_itself,
    bool: _encode_itself,
    str: _encode_text,
    int: _encode_int,
    float: _encode_float,
    list: _encode_list,
    dict: _encode_dict,
    tuple: _encode_tuple,
    set: _encode_set,
    frozenset: _encode_set,
    datetime: moments.encode_datetime,
    date: moments.encode_date,
    time: moments.encode_time,
    timedelta: moments.encode_timedelta,
    UUID: _encode_uuid,
    Decimal: _encode_decimal,
    bytes: _encode_bytes,
}

# Enums first: many are text or integers too.
_BASES: tuple[tuple[type, Encoder], ...] = (
    (Enum, _encode_enum),
    (Promise, _encode_lazy),
    (LazyObject, _encode_unwrapped),
    (str, lambda value, room: _encode_text(str.__str__(value), room)),
    (int, lambda value, room: _encode_int(int.__int__(value), room)),
    (float, lambda value, room: _encode_float(float.__float__(value), room)),
    (list, _encode_list),
    (dict, _encode_dict),
    (datetime, moments.encode_kin_of_datetime),
    (date, moments.encode_date),
)
