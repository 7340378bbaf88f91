"""SQLite: one writer at a time, so nothing needs to be locked row by row."""

from .base import Store


class SQLiteStore(Store):
    """As it stands: Django's features say that there is nothing to lock."""
