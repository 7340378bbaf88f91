"""Pages that stay up to date: a script asks again for what changes on them.

Whatever is marked with ``data-rqueue-live`` and has an id is put in the place of what
has that id. Everything works without the script, too; only less lively.
"""

from django.http import HttpRequest

HEADER = "X-Robust-Queue-Live"


def is_wanted_in_part(request: HttpRequest) -> bool:
    """Does the script ask, who has the frame of the page already?"""
    return HEADER in request.headers
