"""Settings under which the copy of Django's tests runs."""

import os

import django

from tests import services

# A database beside those of the test run that starts this one, and for each worker
# of pytest-xdist its own.
NAME = "contract" + os.environ.get("PYTEST_XDIST_WORKER", "")

DATABASES = {
    "default": services.database(os.environ.get("RQ_DATABASE", "sqlite"), NAME)
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

BACKPORT = ["django_tasks"] if django.VERSION < (6, 0) else []
INSTALLED_APPS = [*BACKPORT, "robust_queue", "tasks"]

TASKS = {"default": {"BACKEND": "robust_queue.backend.RobustQueueBackend"}}
TEST_RUNNER = "tests.conformance.recording.RecordingRunner"

SECRET_KEY = "not a secret: nothing is ever signed with it"  # noqa: S105
USE_TZ = True
