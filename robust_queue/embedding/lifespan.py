"""The queue for as long as an ASGI server runs: its lifespan protocol."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

if TYPE_CHECKING:
    from .embedded import Embedded

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[Any]]


def with_lifespan(
    application: Application, *, embedded: "Embedded | None" = None
) -> Application:
    """An application that starts the queue with the server and stops it with it.

    Django's own knows nothing of lifespans. It is asked for everything else.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(embedded or _default(), receive, send)
        else:
            await application(scope, receive, send)

    return wrapped


async def _live(embedded: "Embedded", receive: Receive, send: Send) -> None:
    while True:
        phase = (await receive())["type"].removeprefix("lifespan.")
        action = embedded.start if phase == "startup" else embedded.leave
        try:
            await sync_to_async(action, thread_sensitive=False)()
        except Exception as error:
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
            raise
        await send({"type": f"lifespan.{phase}.complete"})
        if phase == "shutdown":
            return


def _default() -> "Embedded":
    from .embedded import Embedded  # noqa: PLC0415 (needs the app registry)

    return Embedded()
