"""Bodies: JSON in UTF-8, as RFC 8259 has it, and nothing else."""

import json
import re
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser

from .problems import Problem

_MALFORMED = "The body is not JSON."


class JsonParser(Parser):
    """Reads bodies, and says what is wrong with one."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise Problem(415, "not_json", "Content-Type has to be application/json.")
        try:
            # Of bytes json guesses the encoding, and lets halves of characters pass.
            text = request.body.decode()
            told = json.loads(text, parse_constant=_refuse_constant)
            _refuse_halves(text, told)
        except (ValueError, RecursionError):
            raise Problem(400, "malformed", _MALFORMED) from None
        return told


def _refuse_halves(text: str, told: Any) -> None:
    # Halves of a character, which no database takes, can be written as escapes only.
    if _HALF.search(text):
        json.dumps(told, ensure_ascii=False).encode()


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _refuse_constant(name: str) -> NoReturn:
    # Python reads NaN and Infinity, which JSON does not have.
    raise ValueError(name)
