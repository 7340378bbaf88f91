"""What is written to the log, in which form, and where people see it."""

from .console import show
from .formatters import JobFilter, JSONFormatter, LineFormatter
from .lines import take_over

__all__ = ["JSONFormatter", "JobFilter", "LineFormatter", "show", "take_over"]
