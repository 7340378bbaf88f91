"""The API: its routers under one roof."""

from robust_queue import __version__

from . import (
    doing,
    enqueueing,
    operations,
    overview,
    problems,
    processes,
    queues,
    recurring,
    workers,
)
from .document import QueueAPI
from .endings import reach_all_names
from .ids import take_ids_in_any_case
from .parsing import JsonParser
from .wire import Renderer

api = QueueAPI(
    title="Robust Queue",
    version=__version__,
    description="Look after the queue, and work for it, from anywhere.",
    urls_namespace="robust_queue_api",
    parser=JsonParser(),
    renderer=Renderer(),
    # Both are served by views of our own, which ask who wants to see them.
    docs_url=None,
    openapi_url=None,
)
problems.install(api)
for prefix, router in (
    # Also what ``jobs``, ``enqueueing`` and ``rerunning`` have, at the same addresses.
    ("/jobs", doing.router),
    ("/operations", operations.router),
    ("/tasks", enqueueing.tasks),
    ("/queues", queues.router),
    ("/processes", processes.router),
    ("/recurring", recurring.router),
    ("/runs", recurring.runs),
    ("", overview.router),
    ("/workers", workers.router),
):
    reach_all_names(router)
    take_ids_in_any_case(router)
    api.add_router(prefix, router)
api.tell_gates()
