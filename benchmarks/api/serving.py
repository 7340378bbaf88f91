"""A web server with the API, in one process, and the settings of its project."""

import socket
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.systems.base import python

GUNICORN = "gunicorn"
UVICORN = "uvicorn"
HOST = "127.0.0.1"
# More than there are workers, one of which may wait in each.
THREADS = 8

# Those of a new project, for which the apps of the admin are there.
MIDDLEWARE = (
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
)
CONTRIB = ("auth", "contenttypes", "sessions", "messages")


def settings(apps: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a project with these apps and the API."""
    return {
        "INSTALLED_APPS": [*apps, *(f"django.contrib.{each}" for each in CONTRIB)],
        "MIDDLEWARE": [*MIDDLEWARE],
        "ROOT_URLCONF": "benchmarks.api.urls",
        "ALLOWED_HOSTS": [HOST],
    }


def kept_connections(server: str) -> dict[str, Any]:
    """Return what DATABASES says, lest each request makes a connection of its own.

    Threads of gunicorn stay and may keep theirs; those of ASGI servers come and go.
    """
    if server == UVICORN:
        return {"OPTIONS": {"pool": {"min_size": 4, "max_size": THREADS}}}
    return {"CONN_MAX_AGE": 60}


def command(server: str, port: int) -> list[str]:
    """Return the command line of one process of that server."""
    return python("-m", *_LINES[server], *_ADDRESSES[server](port))


def free_port() -> int:
    """Return a port of this machine that nobody has."""
    with socket.socket() as door:
        door.bind((HOST, 0))
        port: int = door.getsockname()[1]
        return port


_LINES: dict[str, Sequence[str]] = {
    GUNICORN: (
        *("gunicorn", "--workers", "1"),
        *("--worker-class", "gthread", "--threads", str(THREADS)),
        *("--keep-alive", "60", "--log-level", "warning"),
        "django.core.wsgi:get_wsgi_application()",
    ),
    UVICORN: (
        *("uvicorn", "--factory", "--lifespan", "off"),
        *("--no-access-log", "--log-level", "warning"),
        "django.core.asgi:get_asgi_application",
    ),
}
_ADDRESSES = {
    GUNICORN: lambda port: ("--bind", f"{HOST}:{port}"),
    UVICORN: lambda port: ("--host", HOST, "--port", str(port)),
}
