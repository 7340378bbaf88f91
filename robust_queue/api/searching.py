"""What a request looks for ──▶ a search."""

from typing import Any

from robust_queue.lifecycle.moments import as_stored
from robust_queue.lifecycle.search import JobSearch
from robust_queue.lifecycle.search_words import SearchError

from .access import Caller
from .job_facts import Eyes
from .job_schemas import JobFilter
from .problems import invalid

_MOMENTS = ("enqueued_from", "enqueued_until", "finished_from", "finished_until")


def search_of(caller: Caller, wanted: JobFilter) -> JobSearch:
    """The jobs that are meant; a problem if that makes no sense."""
    given: dict[str, Any] = wanted.model_dump(exclude_none=True)
    try:
        moments = {each: as_stored(given[each]) for each in _MOMENTS if each in given}
        in_arguments = "text" in given and Eyes(caller).may_search
        return JobSearch(**given | moments, in_arguments=in_arguments)
    except OverflowError as error:
        raise invalid("A moment is out of reach.", "bad_filter") from error
    except SearchError as error:
        raise invalid(str(error), "bad_filter") from error
