"""Workers, dispatchers and the scheduler inside another program, such as a web server.

They are threads of its process, as in the mode async of ``manage.py robust_queue``, so
that a small site needs no second process.
"""

from typing import TYPE_CHECKING

from .lifespan import with_lifespan

if TYPE_CHECKING:
    from .embedded import Embedded

__all__ = ["Embedded", "with_lifespan"]


def __getattr__(name: str) -> object:
    # Needs the app registry, which a server fills after it has read its own settings.
    if name == "Embedded":
        from .embedded import Embedded  # noqa: PLC0415

        return Embedded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
