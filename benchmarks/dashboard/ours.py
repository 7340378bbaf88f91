"""Our dashboard: what its tables hold, and its pages."""

from benchmarks.dashboard.our_pages import ours as pages
from benchmarks.dashboard.our_stock import refresh, stock

__all__ = ["pages", "refresh", "stock"]
