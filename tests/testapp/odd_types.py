"""Tasks whose parameters say all kinds of things."""

from typing import Any, NamedTuple, TypedDict, Unpack

import pydantic
import typing_extensions
from pydantic import ImportString

from robust_queue import Concurrency, task


class Size(NamedTuple):
    """As a parameter may have it."""

    width: int
    height: int


class Options(TypedDict, total=False):
    """Likewise, by names."""

    colour: str
    copies: int


class Hooks(typing_extensions.TypedDict):
    """Likewise, with something that is to be imported."""

    hook: ImportString


@task
def partly_known(x: "Nope", y: int):  # noqa: F821
    return y


@task
def told_in_words(x: "some words about it"):  # noqa: F722
    return x


@task
def with_options(**options: Unpack[Options]):
    return options


@task
def sized(size: Size):
    return size.width


@task
def numbered(*numbers: int, **others: float):
    return numbers, others


@task
def at_first(first: int, /, second: str = ""):
    return first, second


@task
def imported(what: ImportString[Any]):
    return what


@task
def hooked(hooks: Hooks):
    return hooks


class Exact(pydantic.BaseModel):
    """A type that raises what nobody expects of it."""

    known: str

    @pydantic.field_validator("known")
    @classmethod
    def look_up(cls, name):
        return {}[name]


@task
def exact(what: Exact):
    return what


@task(concurrency=Concurrency(key=lambda **named: {}[named["name"]], limit=1))
def keyed(**named):
    return named


@task(takes_context=True)
def in_context(context, number: int):
    return number
