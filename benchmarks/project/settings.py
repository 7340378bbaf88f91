"""Settings of the system that `BENCH_SYSTEM` names; it adds what it needs itself."""

import os

from benchmarks.api import serving
from benchmarks.dashboard import installation
from benchmarks.systems import load
from benchmarks.systems.base import DASHBOARD, REDIS, SQLITE, django_database

SECRET_KEY = "not a secret: nothing is served"  # noqa: S105
DEBUG = False
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS: list[str] = []

_kind = os.environ["BENCH_DATABASE_KIND"]
_url = os.environ["BENCH_DATABASE_URL"]
if _kind == REDIS:
    _kind, _url = SQLITE, "sqlite:///:memory:"

DATABASES = {"default": django_database(_url, _kind)}

_system = load(os.environ["BENCH_SYSTEM"])()
globals().update(_system.django_settings())
if _system.configuration == DASHBOARD:
    globals().update(installation.settings(INSTALLED_APPS))
if _server := _system.options.get("server"):
    globals().update(serving.settings(INSTALLED_APPS))
    DATABASES["default"].update(serving.kept_connections(_server))
