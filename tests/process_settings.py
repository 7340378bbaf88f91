"""Settings of the supervisors that tests start: what RQ_SUPERVISED says, as JSON."""

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, TASKS

_SUPERVISED = json.loads(os.environ.get("RQ_SUPERVISED", "{}"))

# It exists only where a test asks for it.
if not _SUPERVISED.get("with_other"):
    del DATABASES["other"], TASKS["other"]

# Every supervisor that starts checks its addresses, and there are hundreds of them.
ROOT_URLCONF = _SUPERVISED.get("urls", "tests.admin_urls")

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
