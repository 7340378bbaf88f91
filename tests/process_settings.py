"""Settings of the supervisors that tests start: what RQ_SUPERVISED says, as JSON."""

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS, TASKS

_SUPERVISED = json.loads(os.environ.get("RQ_SUPERVISED", "{}"))

# It exists only where a test asks for it.
if not _SUPERVISED.get("with_other"):
    del DATABASES["other"], TASKS["other"]

# What serves no pages needs none. Hundreds of supervisors would import and check them.
ROOT_URLCONF = _SUPERVISED.get("urls", "tests.no_urls")
if "urls" not in _SUPERVISED:
    INSTALLED_APPS = [each for each in INSTALLED_APPS if not each.endswith(".admin")]

DEBUG = _SUPERVISED.get("debug", False)

ROBUST_QUEUE = {
    "task_modules": ["tests.testapp.process_tasks"],
    **_SUPERVISED.get("robust_queue", {}),
}
for _database in DATABASES.values():
    _database.setdefault("OPTIONS", {}).update(_SUPERVISED.get("database_options", {}))
    _database.update(_SUPERVISED.get("database", {}))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(process)d %(levelname)s %(message)s"}
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"robust_queue": {"handlers": ["console"], "level": "DEBUG"}},
}
