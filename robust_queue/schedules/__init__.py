"""When a recurring task is due: texts such as "0 12 * * mon-fri" or "every 5 minutes".

Pure: moments and zones are handed in, and nothing here knows Django. What happens when
clocks are turned is written in ``daylight``.
"""

from .schedule import Schedule
from .zones import zone_named

__all__ = ["Schedule", "zone_named"]
