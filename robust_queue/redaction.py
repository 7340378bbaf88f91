"""Redaction: what stands under a key such as ``password`` is not for every eye.

Keys are compared by whole words. A key is cut into words where its letters change from
small to large, at digits, and at everything that is neither: ``X-Auth-Token`` has
three, ``userPassword1`` too. It is sensitive if words in a row make up one of the keys
that are listed, whatever their case, with or without an ``s`` at the end. So
``api_key`` stands for ``apiKey``, ``API-KEYS`` and ``old_apikey``, and ``token`` not
for ``tokenizer``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeAlias
from unicodedata import normalize

from django.utils.module_loading import import_string

from robust_queue.rules import Rule, is_coroutine_function

PLACEHOLDER = "••••••"

SENSITIVE_KEYS = (
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "jwt",
    "api_key",
    "access_key",
    "private_key",
    "auth",
    "authorization",
    "credential",
    "cookie",
    "session",
    "card_number",
    "cvc",
    "cvv",
    "ssn",
)
"""The keys whose values are redacted if the settings do not say otherwise."""

Hook: TypeAlias = Callable[[str, list[Any], dict[str, Any]], Any]


def redacted(value: Any, keys: Sequence[str]) -> Any:
    """A plain value without what stands under sensitive keys, at whatever depth.

    Of two in a list, the first may be such a key: headers often come in pairs.
    """
    return _redacted(value, _pattern(tuple(keys))) if keys else value


def is_sensitive(name: str, keys: Sequence[str]) -> bool:
    """Is what has this name to be redacted?"""
    return bool(keys) and _matches(_pattern(tuple(keys)), name)


def hidden(value: Any) -> Any:
    """What is shown in place of a value. That there is none, yes or no is no secret."""
    return value if value is None or isinstance(value, bool) else PLACEHOLDER


def hook_at(path: str) -> Hook:
    """The function that a dotted path names."""
    found = import_string(path)
    if not callable(found) or is_coroutine_function(found):
        raise TypeError(f"{path} is no function that could be called here.")
    function: Hook = found
    return function


def _redacted(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: hidden(item) if _matches(pattern, key) else _redacted(item, pattern)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        if len(value) == _PAIR and _matches(pattern, value[0]):
            return [value[0], hidden(value[1])]
        return [_redacted(item, pattern) for item in value]
    return value


def _matches(pattern: re.Pattern[str], key: Any) -> bool:
    return isinstance(key, str) and pattern.search(_words(key)) is not None


@lru_cache(maxsize=16)
def _pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the keys between two spaces, its own words apart or not."""
    joined = (_words(key).replace(" ", "") for key in keys)
    choices = "|".join(" ?".join(map(re.escape, each)) for each in joined)
    return re.compile(f" (?:{choices})s? ")


def _words(key: str) -> str:
    """The words of a key with a space around each."""
    parted = _HUMP.sub(" ", normalize("NFKC", key))
    return f" {' '.join(_WORD.findall(parted))} ".casefold()


_PAIR = 2
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+|\d+")


def _listed(value: Any) -> tuple[Any, ...]:
    # A text alone is a slip: it would be a list of letters.
    return tuple(value) if isinstance(value, list | tuple) else (None,)


def _are_keys(values: Sequence[Any]) -> bool:
    return all(isinstance(each, str) and _words(each).strip() for each in values)


def _is_hook(value: Any) -> bool:
    if isinstance(value, str):
        parts = value.split(".")
        return len(parts) > 1 and all(part.isidentifier() for part in parts)
    return value is None or (callable(value) and not is_coroutine_function(value))


_KEYS = Rule("a list of names such as 'password'; [] for none", _are_keys, _listed)
_HOOK = Rule(
    "a function of (task_path, args, kwargs), its dotted path, or None", _is_hook
)

SensitiveKeys = Annotated[Sequence[str], _KEYS]
HookOrNone = Annotated[Hook | str | None, _HOOK]
