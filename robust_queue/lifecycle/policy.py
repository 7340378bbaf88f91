"""Which policy holds for a job: its task's, else its queue's, else its backend's."""

from typing import NamedTuple, Protocol

from robust_queue import registry
from robust_queue.aliases import options_of
from robust_queue.compat import AnyTask
from robust_queue.configuration import BackendOptions
from robust_queue.policies import Policy, merged

MOST_KNOWN = 10_000  # stored text may name any number of tasks and queues


class Terms(NamedTuple):
    """What holds for a job, as this process has it declared and configured."""

    policy: Policy
    options: BackendOptions
    task: AnyTask | None


class Named(Protocol):
    """A claim, or a job: whatever tells these three."""

    @property
    def task_path(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def queue_name(self) -> str: ...


_known: dict[tuple[str, str, str], Terms] = {}


def terms_for(job: Named) -> Terms:
    """The terms of a job. Asked for each one, and made anew if something changed."""
    task, options = registry.find(job.task_path), options_of(job.backend)
    key = job.task_path, job.backend, job.queue_name
    known = _known.get(key)
    if known is not None and known.task is task and known.options is options:
        return known
    queue = options.queue_defaults.get(job.queue_name)
    terms = Terms(merged(task, queue, options.task_defaults), options, task)
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[key] = terms
    return terms


def policy_for(job: Named) -> Policy:
    """The policy of a job."""
    return terms_for(job).policy
