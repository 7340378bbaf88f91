"""JSON values ⇄ ASCII text."""

import json
from typing import Any, TypeAlias

from robust_queue.arguments.misfits import MisfitError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

TAG = "$type"
# What a stored tag has inside is unknown until its reader has looked.
Tag: TypeAlias = dict[str, Any]


def from_text(text: str) -> Json:
    """The JSON value of a stored text."""
    try:
        return _decoder.decode(text)  # type: ignore[no-any-return]
    except ValueError as cause:
        raise MisfitError(f"The stored text is not JSON: {cause}") from cause


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number.")


# One encoder for the life of the process: json.dumps() builds one at each call.
# Cycles are refused earlier, by the limit on nesting.
to_text = json.JSONEncoder(
    ensure_ascii=True, check_circular=False, allow_nan=False, separators=(",", ":")
).encode
# Equal values give equal text, in whatever order their keys were set.
to_sorted_text = json.JSONEncoder(
    ensure_ascii=True,
    check_circular=False,
    allow_nan=False,
    separators=(",", ":"),
    sort_keys=True,
).encode
_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
