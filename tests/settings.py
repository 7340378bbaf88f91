"""Settings of the test-suite; RQ_DATABASE picks the database it runs against."""

import os

import django

from tests import services

KIND = os.environ.get("RQ_DATABASE", "sqlite")

DATABASES = {
    "default": services.database(KIND),
    # A second database of the same kind, for queues that live apart.
    "other": services.database(KIND, "other"),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django_tasks",
    "robust_queue",
    "tests.testapp",
]

# What the admin needs.
ROOT_URLCONF = "tests.urls"
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

SECRET_KEY = "not a secret: nothing but tests is ever signed with it"  # noqa: S105
USE_TZ = True
TIME_ZONE = "UTC"

TASKS_PACKAGE = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
TASKS = {
    "default": {"BACKEND": "robust_queue.backend.RobustQueueBackend", "QUEUES": []},
    "other": {
        "BACKEND": "robust_queue.backend.RobustQueueBackend",
        "QUEUES": [],
        "OPTIONS": {"DATABASE": "other"},
    },
    "immediate": {"BACKEND": f"{TASKS_PACKAGE}.backends.immediate.ImmediateBackend"},
    "backport_immediate": {
        "BACKEND": "django_tasks.backends.immediate.ImmediateBackend"
    },
}
