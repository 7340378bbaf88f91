"""The hot statements, one module per database behind one small interface.

What a statement promises is written on the methods of :class:`~.base.Store`; one
contract test-suite runs against all of them.
"""

from django.db import connections

from .base import Store
from .mysql import MySQLStore
from .postgresql import PostgreSQLStore
from .sqlite import SQLiteStore

_STORES: dict[str, type[Store]] = {
    "mysql": MySQLStore,
    "postgresql": PostgreSQLStore,
    "sqlite": SQLiteStore,
}


def store_for(alias: str) -> Store:
    """The store that speaks the dialect of this database."""
    return _STORES[connections[alias].vendor](alias)


__all__ = ["Store", "store_for"]
