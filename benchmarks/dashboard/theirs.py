"""The dashboard of dj-queue: what its tables hold, and its pages."""

from benchmarks.dashboard.their_pages import theirs as pages
from benchmarks.dashboard.their_stock import refresh, stock

__all__ = ["pages", "refresh", "stock"]
