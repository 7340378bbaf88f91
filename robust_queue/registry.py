"""The tasks this process has declared, by their dotted path.

A job names its task by path. Only paths found here are ever run: text from the
database selects among declared tasks and is never imported.
"""

import logging
import sys
from importlib import import_module
from threading import RLock
from typing import Any

from django.apps import apps
from django.core.signals import setting_changed
from django.utils.module_loading import module_has_submodule

from .compat import AnyTask, InvalidTask, is_task
from .configuration import current
from .exceptions import UnknownTaskError

logger = logging.getLogger("robust_queue")

_declared: dict[str, AnyTask] = {}


def declare(task: AnyTask) -> None:
    """Remember a task by its path; variations made with ``using()`` change nothing."""
    known = _declared.get(task.module_path)
    if known is None or known.func is not task.func:
        _refuse_namesake(task, known)
        _declared[task.module_path] = task
    elif known.takes_context != task.takes_context:
        raise InvalidTask(
            f"{task.module_path} is declared twice, once with takes_context and once "
            "without. A worker could not tell which is meant."
        )


def _refuse_namesake(task: AnyTask, known: AnyTask | None) -> None:
    """An external task is known by its name alone, which nobody else may have.

    Its module may declare it again, as it does when it is loaded anew.
    """
    if known is None and is_external(task):
        known = _declared_elsewhere(task.module_path)
    if known is None or not (is_external(task) or is_external(known)):
        return
    is_again = is_external(task) and is_external(known)
    if not is_again or task.func.__module__ != known.func.__module__:
        raise InvalidTask(
            f"Another task is called {task.module_path!r}, declared in "
            f"{known.func.__module__}. Give the external task a name of its own."
        )


def redeclare(task: AnyTask) -> None:
    """Remember a task instead of the one that a decorator has made it of."""
    _declared[task.module_path] = task


def find(path: str) -> AnyTask | None:
    """The declared task of that path, or None. Looks once where tasks are declared."""
    task = _loaded(path)
    if task is None and not _discovery.is_over:
        _discovery.begin()
        task = _loaded(path)
    return task


def resolve(path: str) -> AnyTask:
    """The declared task of that path, or an error that says what to do."""
    task = find(path)
    if task is None:
        raise UnknownTaskError(
            f"No task {path!r} is declared in this process. If it was renamed or "
            "removed, discard the job; if it lives outside the `tasks` modules of "
            "the installed apps, name its module in ROBUST_QUEUE['task_modules']."
        ) from _discovery.trouble
    return task


def discover() -> dict[str, AnyTask]:
    """Look where tasks are declared, and return all of them by path."""
    _discovery.begin()
    return declared()


def declared() -> dict[str, AnyTask]:
    """All tasks declared so far by path."""
    return dict(_declared)


def external_queues() -> frozenset[str]:
    """The queues of all external tasks. Looks once where tasks are declared."""
    if not _discovery.is_over:
        _discovery.begin()
    # A copy: another thread may be importing a module that declares some.
    known = tuple(_declared.values())
    return frozenset(each.queue_name for each in known if is_external(each))


def is_external(task: AnyTask) -> bool:
    """Is this task performed by workers outside?"""
    return getattr(task, "is_external", False)


def trouble() -> Exception | None:
    """The first error that kept a module of tasks from being imported, if any did."""
    return _discovery.trouble


class _Discovery:
    """The import of every module that declares tasks, once per process."""

    def __init__(self) -> None:
        self.is_over = False
        self.trouble: Exception | None = None
        self._is_running = False
        self._lock = RLock()

    def begin(self) -> None:
        # Other threads wait for the end. This one is let in again: a module that is
        # being imported may ask for a task itself.
        with self._lock:
            if self.is_over or self._is_running:
                return
            self._is_running = True
            try:
                for module in (*_modules_of_apps(), *current().task_modules):
                    self._import(module)
            finally:
                self._is_running, self.is_over = False, True

    def _import(self, module: str) -> None:
        try:
            import_module(module)
        except Exception as error:
            # A broken module must hide neither the tasks of others nor their results.
            logger.exception("The module of tasks %s could not be imported.", module)
            self.trouble = self.trouble or error

    def forget(self, *, setting: str, **kwargs: Any) -> None:
        if setting in {"INSTALLED_APPS", "ROBUST_QUEUE"}:
            self.is_over, self.trouble = False, None


def _modules_of_apps() -> list[str]:
    return [
        f"{app.name}.tasks"
        for app in apps.get_app_configs()
        if module_has_submodule(app.module, "tasks")
    ]


_discovery = _Discovery()
setting_changed.connect(_discovery.forget, dispatch_uid="robust_queue.registry")


def _loaded(path: str) -> AnyTask | None:
    return _declared.get(path) or _declared_elsewhere(path)


def _declared_elsewhere(path: str) -> AnyTask | None:
    """A task declared on another backend, in a module that is already loaded.

    Its class is not ours, so it never registered itself.
    """
    module_name, _, name = path.rpartition(".")
    module = sys.modules.get(module_name)
    # vars() and not getattr(): a module's __getattr__ may import.
    found = vars(module).get(name) if module else None
    return found if is_task(found) else None
