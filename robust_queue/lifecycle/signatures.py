"""What can be passed to a task."""

from collections.abc import Callable
from functools import lru_cache
from inspect import Signature, signature
from typing import Any


@lru_cache(maxsize=1024)
def signature_of(function: Callable[..., Any]) -> Signature:
    """Of the outermost function, which is the one that is called."""
    return signature(function, follow_wrapped=False)
