"""The wire: what is said between a worker, its nursery and the processes of tasks.

Each message is a line of JSON with plain values: nothing that a task has made is ever
turned into objects here.
"""

import json
import socket
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from robust_queue.stores.rows import Claim, Failed, Finished, Outcome, Snoozed

Message: TypeAlias = dict[str, Any]

_PIECE = 256 * 1024
# What comes along is not for programs that tasks start.
_ALONE: int = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_BESIDE = socket.CMSG_LEN(4 * array("i").itemsize)


class Line:
    """One end of a connection. Descriptors may be sent along."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._received = bytearray()
        self._unsent = bytearray()
        self._descriptors: list[int] = []

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    # ── For whoever may wait ───────────────────────────────────────────────────

    def say(self, **message: Any) -> None:
        """Send a message, however long that takes."""
        self._socket.sendall(_written(message))

    def wait(self) -> Message | None:
        """The next message; None if there is nobody at the other end any more."""
        while (message := self._next()) is None:
            if not self._take(0):
                return None
        return message

    # ── For whoever may not ────────────────────────────────────────────────────

    def post(self, descriptors: Sequence[int] = (), **message: Any) -> None:
        """Send as much of a message as is possible now; flush() sends the rest."""
        if not descriptors:
            self._unsent += _written(message)
        self.flush()
        if descriptors:
            self._send_along(descriptors, _written(message))

    def flush(self) -> None:
        with suppress(BlockingIOError):
            while self._unsent:
                sent = self._socket.send(self._unsent[:_PIECE], socket.MSG_DONTWAIT)
                del self._unsent[:sent]

    def _send_along(self, descriptors: Sequence[int], message: bytes) -> None:
        if self._unsent:
            raise BlockingIOError("Nobody listens at the other end.")
        rights = array("i", descriptors)
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        # Short, and so in one piece. Not send_fds(), which heeds no flags.
        self._socket.sendmsg([message], beside, socket.MSG_DONTWAIT)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def arrived(self) -> Iterator[Message]:
        """What has come; EOFError if nobody is at the other end any more."""
        is_open = True
        with suppress(BlockingIOError):
            while is_open:
                is_open = self._take(socket.MSG_DONTWAIT)
        while (message := self._next()) is not None:
            yield message
        if not is_open:
            raise EOFError

    def descriptors(self, number: int) -> list[int]:
        """So many of those that came along, in order."""
        taken, self._descriptors = (
            self._descriptors[:number],
            self._descriptors[number:],
        )
        return taken

    def _take(self, flags: int) -> bool:
        try:
            # Not recv_fds(), which heeds no flags.
            data, beside, *_ = self._socket.recvmsg(_PIECE, _BESIDE, flags | _ALONE)
        except ConnectionError:
            return False
        self._received += data
        for *_, packed in beside:
            self._descriptors += array("i", packed)
        return bool(data)

    def _next(self) -> Message | None:
        line, end, rest = self._received.partition(b"\n")
        if not end:
            return None
        self._received = rest
        message: Message = json.loads(line)
        return message


def line_and_end() -> tuple[Line, socket.socket]:
    """A connection: a line to keep, and the end that is given to somebody else."""
    here, there = socket.socketpair()
    return Line(here), there


def _written(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


# ── Claims and outcomes ────────────────────────────────────────────────────────

_IDS = {"job_id", "token", "process_id"}
_MOMENTS = {
    *("enqueued_at", "run_after", "started_at", "finished_at", "retry_at", "until"),
}
_KINDS: dict[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Finished, Failed, Snoozed)
}


def plain_claim(claim: Claim) -> Message:
    return _plain(claim)


def claim_of(message: Message) -> Claim:
    return Claim(**_read(message))


def plain_outcome(outcome: Outcome) -> Message:
    return {"as": type(outcome).__name__, **_plain(outcome)}


def outcome_of(message: Message) -> Outcome:
    kind, *facts = message.items()
    return _KINDS[kind[1]](**_read(dict(facts)))


def _plain(row: Any) -> Message:
    return {each.name: _told(getattr(row, each.name)) for each in fields(row)}


def _told(value: Any) -> Any:
    match value:
        case UUID():
            return value.hex
        case datetime():
            return value.isoformat()
    return value


def _read(message: Message) -> Message:
    return {name: _meant(name, value) for name, value in message.items()}


def _meant(name: str, value: Any) -> Any:
    if value is not None and name in _IDS:
        return UUID(value)
    if value is not None and name in _MOMENTS:
        return datetime.fromisoformat(value)
    return value
