"""The systems that are measured, each in a module of its own."""

from importlib import import_module

from benchmarks.systems.base import System

MODULES = {
    "robust-queue": "robust_queue",
    "raw": "raw",
    "pgqueuer": "pgqueuer",
    "oban": "oban",
    "procrastinate": "procrastinate",
    "dj-queue": "dj_queue",
    "django-ox": "django_ox",
    "steady-queue": "steady_queue",
    "django-tasks-db": "django_tasks_db",
    "celery": "celery",
    "dramatiq": "dramatiq",
    "huey": "huey",
    "rq": "rq",
}


def load(name: str) -> type[System]:
    """Return the class of the system with this name, which its module calls SYSTEM."""
    system: type[System] = import_module(f"benchmarks.systems.{MODULES[name]}").SYSTEM
    return system
