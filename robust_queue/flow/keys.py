"""Keys: what a limit counts by, as text that fits into a column."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

from django.db.models import Model

from robust_queue.compat import InvalidTask

Key: TypeAlias = str | Callable[..., Any]

LENGTH = 255
# Between the keys of a job that has several. No key contains it.
SEPARATOR = "\n"

_DIGEST = 16


def check(name: str, key: Any) -> None:
    """Refuse what is no key."""
    if isinstance(key, str) or (callable(key) and not iscoroutinefunction(key)):
        return
    raise InvalidTask(
        f"{name} must be a text or a function of the task's arguments, got {key!r}."
    )


def values(key: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """What a key is worth for a call: one value, several, or none at all."""
    value = key(*args, **kwargs) if callable(key) else key
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple | set) else [value]


def text_of(value: Any) -> str:
    """A value as part of a key. A model is known by its name and its primary key."""
    if isinstance(value, Model):
        if value.pk is None:
            raise ValueError(f"{value!r} is no key: it has not been saved.")
        return f"{value._meta.label}:{value.pk}"
    return str(value)


def key_of(group: str, value: Any) -> str:
    """The key of a value in its group; a long one ends in a digest of itself."""
    return fitting(f"{group}/{text_of(value)}")


def fitting(text: str, length: int = LENGTH) -> str:
    """The text itself if a column can hold it, else one that is like no other."""
    readable = "".join(each if each.isprintable() else "?" for each in text)
    # MariaDB does not tell texts apart that differ in spaces at the end.
    if readable == text and len(text) <= length and not text.endswith(" "):
        return text
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST)
    ending = f"#{digest.hexdigest()}"
    return readable[: length - len(ending)] + ending


def split(keys: str) -> list[str]:
    """The keys of a job, as its row has them."""
    return keys.split(SEPARATOR) if keys else []
