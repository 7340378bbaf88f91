"""The application of huey, on Redis, SQLite or PostgreSQL."""

import os
import sqlite3
from typing import Any
from urllib.parse import urlsplit

from huey import Huey, PostgresHuey, RedisHuey, SqliteHuey

from benchmarks.marks import mark
from benchmarks.systems.base import POSTGRESQL, SQLITE


class Normal(sqlite3.Connection):
    """A connection as durable as those of the other systems on SQLite.

    By itself huey knows only to wait for the disk at every commit, or never.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.execute("PRAGMA synchronous = NORMAL")


def _huey(kind: str, url: str) -> Huey:
    if kind == SQLITE:
        return SqliteHuey(filename=urlsplit(url).path, timeout=20, factory=Normal)
    return PostgresHuey(dsn=url) if kind == POSTGRESQL else RedisHuey(url=url)


huey = _huey(os.environ["BENCH_DATABASE_KIND"], os.environ["BENCH_DATABASE_URL"])


@huey.task()
def work(number: int) -> None:
    """Leave a mark."""
    mark(number)
