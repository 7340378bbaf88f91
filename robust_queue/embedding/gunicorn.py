"""The queue in every worker of gunicorn: hooks for its configuration file::

from robust_queue.embedding.gunicorn import post_worker_init, worker_exit
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .embedded import Embedded

_running: "list[Embedded]" = []


def post_worker_init(worker: Any) -> None:
    """Start, in a worker that has loaded the application."""
    from .embedded import Embedded  # noqa: PLC0415 (needs the app registry)

    embedded = Embedded()
    embedded.start()
    _running.append(embedded)


def worker_exit(server: Any, worker: Any) -> None:
    """Stop, in a worker that is about to end."""
    while _running:
        _running.pop().leave()
