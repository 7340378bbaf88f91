"""Settings of the example project: a shop that keeps its tasks in its database."""

from pathlib import Path

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(__file__).resolve().parent / "shop.sqlite3",
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    # The backport that Django 5.2 needs; harmless from 6.0 on, which has its own.
    "django_tasks",
    "robust_queue",
    "example_project.shop",
]

TASKS = {
    "default": {
        "BACKEND": "robust_queue.backend.RobustQueueBackend",
        "QUEUES": ["default", "mail", "photos", "reports"],
    },
}

SECRET_KEY = "not a secret: the example signs nothing"  # noqa: S105
USE_TZ = True
TIME_ZONE = "UTC"

# Django logs what becomes of each task, failures with their traceback. The
# demonstration fails on purpose and tells of it in its own words.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"nowhere": {"class": "logging.NullHandler"}},
    "loggers": {
        "django.tasks": {"handlers": ["nowhere"], "propagate": False},
        "django_tasks": {"handlers": ["nowhere"], "propagate": False},
    },
}
