"""What is said on the channel of PostgreSQL's notifications, and how it is written.

Never which job: whoever hears of a queue has to look, so that each job runs once.
"""

import json
from dataclasses import dataclass
from typing import Self

CHANNEL = "robust_queue"
LONGEST_PAYLOAD = 7_000  # of the 8,000 bytes that PostgreSQL allows


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Queues that have ready jobs, none named for any; or a probe of one listener.

    Or that somebody has cancelled a job that runs, or wants a worker to change.
    """

    queues: frozenset[str] = frozenset()
    probe: str = ""
    is_cancellation: bool = False
    is_tuning: bool = False

    @property
    def payload(self) -> str:
        if self.probe:
            return json.dumps({"probe": self.probe})
        if self.is_cancellation:
            return json.dumps({"cancellation": True})
        if self.is_tuning:
            return json.dumps({"tuning": True})
        text = json.dumps({"queues": sorted(self.queues)})
        return text if len(text) <= LONGEST_PAYLOAD else json.dumps({"queues": []})

    @classmethod
    def of(cls, payload: str) -> Self:
        """Read a payload. What is not understood is taken for news of every queue."""
        try:
            told = json.loads(payload)
            return cls(
                queues=frozenset(map(str, told.get("queues", ()))),
                probe=str(told.get("probe", "")),
                is_cancellation=told.get("cancellation") is True,
                is_tuning=told.get("tuning") is True,
            )
        except (ValueError, TypeError, AttributeError):
            return cls()
