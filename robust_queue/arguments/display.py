"""Values as JSON shows them, to people and to Django: one way, and never failing."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Any

from django.utils.duration import duration_iso_string
from django.utils.functional import LazyObject

from robust_queue.arguments import moments
from robust_queue.arguments.decoding import MALFORMED
from robust_queue.arguments.encoding import DEPTH, encode, enum_value, unwrapped
from robust_queue.arguments.text import TAG, Json, Tag, to_text
from robust_queue.arguments.translations import Translation


def plain_of(value: Any) -> Any:
    """The plain view of a live value."""
    kind = type(value)
    if kind in _ALREADY_PLAIN:
        return value
    if kind is list:
        return [plain_of(item) for item in value]
    for base, show in _LIVE:
        if issubclass(kind, base):
            return show(value)
    return view(encode(value, DEPTH))


def view(node: Json) -> Any:
    """The plain view of what encode() made of a value."""
    if type(node) is list:
        return [view(item) for item in node]
    if type(node) is dict:
        return _view_tag(node) if TAG in node else _view_values(node)
    return node


def _view_tag(tag: Tag) -> Any:
    try:
        return _VIEWS[tag[TAG]](tag)
    except MALFORMED:
        # Better shown as it is than not at all, e.g. after a downgrade.
        return _view_values(tag)


def _view_values(nodes: Mapping[str, Json]) -> dict[str, Any]:
    return {name: view(node) for name, node in nodes.items()}


def _view_items(tag: Tag) -> list[Any]:
    return [view(item) for item in tag["items"]]


def _keyed(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    return {_key(key): value for key, value in pairs}


def _key(plain: Any) -> str:
    if isinstance(plain, str):
        return plain
    try:
        return str(plain)
    except ValueError:  # Python does not write very large integers in decimal.
        return to_text(encode(plain, DEPTH))


def _readable(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return b64encode(value).decode("ascii")


def _view_model(tag: Tag) -> dict[str, Any]:
    return {name: view(tag[name]) for name in ("model", "pk", "database")}


def _view_lazy(tag: Tag) -> str:
    return str(Translation(tag["function"], _view_values(tag["arguments"])).lazy())


_ALREADY_PLAIN = frozenset({NoneType, bool, str, int, float})

# Wider than what can be stored: all that django.utils.json.normalize_json() takes.
_LIVE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (LazyObject, lambda value: plain_of(unwrapped(value))),
    (Enum, lambda value: view(enum_value(value, DEPTH))),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, _readable),
    (
        Mapping,
        lambda value: _keyed((plain_of(k), plain_of(v)) for k, v in value.items()),
    ),
    (Sequence, lambda value: [plain_of(item) for item in value]),
)

_VIEWS: dict[str, Callable[[Tag], Any]] = {
    "str": lambda tag: "".join(tag["parts"]),
    "int": lambda tag: int(tag["hex"], 16),
    "dict": lambda tag: _keyed((view(key), view(item)) for key, item in tag["items"]),
    "tuple": _view_items,
    "set": _view_items,
    "frozenset": _view_items,
    "datetime": lambda tag: tag["value"],
    "date": lambda tag: tag["value"],
    "time": lambda tag: tag["value"],
    "timedelta": lambda tag: duration_iso_string(moments.decode_timedelta(tag)),
    "uuid": lambda tag: tag["value"],
    "decimal": lambda tag: tag["value"],
    "bytes": lambda tag: _readable(b64decode(tag["value"], validate=True)),
    "enum": lambda tag: view(tag["value"]),
    "dataclass": lambda tag: _view_values(tag["fields"]),
    "model": _view_model,
    "lazy": _view_lazy,
}
