"""What a supervisor is about, from its start to its end."""

from enum import Enum, auto


class Mode(Enum):
    """What the supervisor is about."""

    RUNNING = auto()
    RELOADING = auto()
    STOPPING = auto()
    QUITTING = auto()

    @property
    def is_final(self) -> bool:
        """Is there no way but out?"""
        return self in {Mode.STOPPING, Mode.QUITTING}
