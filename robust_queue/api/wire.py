"""What all bodies have in common: JSON as it is meant, and no more than is asked for.

A number is a number there, and a moment says where on earth it is meant.
"""

import re
from datetime import datetime
from typing import Annotated, Any

from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)

from robust_queue.lifecycle.moments import aware

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")


def _is_written_out(value: Any) -> Any:
    # A number would be taken for seconds since 1970, which nobody has promised.
    if isinstance(value, datetime) or _MOMENT.match(str(value)):
        return value
    raise ValueError("It has to be a moment as RFC 3339 has it, with its time zone.")


Moment = Annotated[AwareDatetime, BeforeValidator(_is_written_out)]
Whole = Annotated[int, Field(strict=True)]
Truth = Annotated[bool, Field(strict=True)]
Seconds = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


# A moment in an answer.
Stamp = Annotated[datetime, AfterValidator(aware)]


class Encoder(NinjaJSONEncoder):
    """Writes moments to the microsecond, as filters compare them.

    Django's own leaves off what is shorter than a millisecond.
    """

    def default(self, o: Any) -> Any:
        if isinstance(o, datetime):
            return _written(o)
        return super().default(o)


class Renderer(JSONRenderer):
    """Writes answers."""

    encoder_class = Encoder


def line_of(facts: dict[str, Any]) -> bytes:
    """Facts as a line of JSON, written as answers are."""
    return _encode(facts).encode() + b"\n"


# One for all lines: json.dumps() makes one at each call.
_encode = Encoder().encode


def _written(moment: datetime) -> str:
    return aware(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")


def among(*words: str) -> Any:
    """One of these words as far as is known here. Rows may be of a later version."""
    return Field(json_schema_extra={"enum": [*words]})


class Request(BaseModel):
    """What is sent: no more than what is asked for."""

    model_config = ConfigDict(extra="forbid")
