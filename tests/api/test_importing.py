"""Nothing is imported for a request, whatever a task says of its parameters."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, Optional, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, ImportString, RootModel, TypeAdapter
from pydantic.dataclasses import dataclass as checked_dataclass
from typing_extensions import TypedDict

from robust_queue.api import calls
from robust_queue.api.importing import imports
from tests.testapp import odd_types

# Nobody has imported it, and who does is seen to: it writes.
NAME = "this"

T = TypeVar("T")


class Worded(TypedDict):
    hook: ImportString


class Numbered(NamedTuple):
    hook: ImportString[Any]


@dataclass
class Plain:
    hook: ImportString


@checked_dataclass
class Checked:
    hook: ImportString


class Model(BaseModel):
    hook: ImportString[Any] = None


class Deferred(BaseModel):
    model_config = ConfigDict(defer_build=True)
    hook: ImportString


class Generally(BaseModel, Generic[T]):
    hook: T


class Tree(BaseModel):
    leaves: list["Tree"] = []
    hook: ImportString | None = None


class Deep(BaseModel):
    within: dict[str, list[Worded | Plain]]


class Harmless(BaseModel):
    leaves: list["Harmless"] = []
    name: str = "ImportString"


@pytest.mark.parametrize(
    "hint",
    [
        ImportString,
        ImportString[Any],
        Annotated[ImportString, "whatever"],
        Optional[ImportString],  # noqa: UP045 (as people write it)
        ImportString | int,
        list[ImportString],
        tuple[int, ImportString],
        Mapping[str, ImportString],
        Worded,
        Numbered,
        Plain,
        Checked,
        Model,
        Deferred,
        Generally[ImportString],
        Tree,
        Deep,
        RootModel[list[ImportString]],
        list[Worded],
    ],
    ids=str,
)
def test_what_imports_is_known_however_deep(hint):
    assert imports(TypeAdapter(hint))
    assert calls._judge(hint) == "Nothing is imported for a request."


@pytest.mark.parametrize("hint", [int, list[str], Harmless, dict[str, Any]], ids=str)
def test_others_are_judged(hint):
    assert not imports(TypeAdapter(hint))
    assert isinstance(calls._judge(hint), TypeAdapter)


@pytest.mark.django_db
def test_a_request_does_not_import(token, monkeypatch):
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    body = {"task": odd_types.hooked.module_path, "args": [{"hook": NAME}]}
    answer = token("enqueue").post("/jobs", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_arguments")
    assert NAME not in sys.modules
