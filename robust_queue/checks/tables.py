"""Are the tables there? A migration that is missing keeps everything else waiting."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

APP = "robust_queue"


def pending_migrations(database: str) -> list[str]:
    """The migrations of Robust Queue that have not been applied there yet.

    Cheap enough to be asked every second: the migrations of the project are not loaded,
    and only the table that records them is read.
    """
    applied = MigrationRecorder(connections[database]).applied_migrations()
    # MIGRATION_MODULES may put others in their place, or none at all.
    package, _ = MigrationLoader.migrations_module(APP)
    known = _migrations_in(package) if package else ()
    return [name for name in known if (APP, name) not in applied]


@cache
def _migrations_in(package: str) -> tuple[str, ...]:
    found = iter_modules(import_module(package).__path__)
    names = (name for _, name, is_package in found if not is_package)
    # Django leaves such names out, and so they are never applied.
    return tuple(sorted(name for name in names if not name.startswith(("_", "~"))))
