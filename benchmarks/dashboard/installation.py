"""What a project adds to its settings in order to have the admin."""

from collections.abc import Iterable
from typing import Any

CONTRIB = ("admin", "auth", "contenttypes", "sessions", "messages")
CONTEXT = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
)


def settings(apps: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a project with these apps and the admin."""
    return {
        "INSTALLED_APPS": [*apps, *(f"django.contrib.{each}" for each in CONTRIB)],
        "MIDDLEWARE": [
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        "TEMPLATES": [
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": [*CONTEXT]},
            }
        ],
        "ROOT_URLCONF": "benchmarks.dashboard.urls",
        "ALLOWED_HOSTS": ["*"],
        "STATIC_URL": "static/",
        # No statement of a page is that of its session.
        "SESSION_ENGINE": "django.contrib.sessions.backends.signed_cookies",
    }
