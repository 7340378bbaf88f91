"""Settings of the example project: a shop that keeps its tasks in its database."""

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_DATABASE", FOLDER / "shop.sqlite3"),
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    # The backport that Django 5.2 needs; harmless from 6.0 on, which has its own.
    "django_tasks",
    "robust_queue",
    "example_project.shop",
]

TASKS = {
    "default": {
        "BACKEND": "robust_queue.backend.RobustQueueBackend",
        "QUEUES": [
            "default",
            "labels",
            "letters",
            "mail",
            "parcels",
            "photos",
            "reports",
        ],
    },
}

# What the admin needs; with DEBUG the development server brings its style sheets.
DEBUG = True
ROOT_URLCONF = "example_project.urls"
STATIC_URL = "static/"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

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
