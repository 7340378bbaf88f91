"""The tasks this process has declared, by their dotted path.

A job names its task by path. Only paths found here are ever run: text from the
database selects among declared tasks and is never imported.
"""

import sys
from importlib import import_module

from django.utils.module_loading import autodiscover_modules

from .compat import AnyTask, is_task
from .configuration import current
from .exceptions import UnknownTaskError

_declared: dict[str, AnyTask] = {}


def declare(task: AnyTask) -> None:
    """Remember a task by its path; variations made with ``using()`` change nothing."""
    known = _declared.get(task.module_path)
    if known is None or known.func is not task.func:
        _declared[task.module_path] = task


def discover() -> None:
    """Import every installed app's ``tasks`` module and the configured ones."""
    autodiscover_modules("tasks")
    for module in current().task_modules:
        import_module(module)


def find(path: str) -> AnyTask | None:
    """The declared task of that path, or None."""
    return _declared.get(path) or _declared_elsewhere(path)


def resolve(path: str) -> AnyTask:
    """The declared task of that path, or an error that says what to do."""
    task = find(path)
    if task is None:
        discover()
        task = find(path)
    if task is None:
        raise UnknownTaskError(
            f"No task {path!r} is declared in this process. If it was renamed or "
            "removed, discard the job; if it lives outside the `tasks` modules of "
            "the installed apps, name its module in ROBUST_QUEUE['task_modules']."
        )
    return task


def declared() -> dict[str, AnyTask]:
    """All declared tasks by path."""
    return dict(_declared)


def _declared_elsewhere(path: str) -> AnyTask | None:
    """A task declared on another backend, in a module that is already loaded.

    Its class is not ours, so it never registered itself.
    """
    module_name, _, name = path.rpartition(".")
    module = sys.modules.get(module_name)
    # vars() and not getattr(): a module's __getattr__ may import.
    found = vars(module).get(name) if module else None
    return found if is_task(found) else None
