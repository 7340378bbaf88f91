"""What a configuration asks of its host and of the server of its database."""

from robust_queue.configuration import ConfigurationOptions, WorkerConfiguration

SUPERVISOR = 1
# A main thread and a heart, in every child.
CHILD = 2
# One for what they begin and tell, and one on which their own queries take turns.
COROUTINES = 2


def connections_needed(options: ConfigurationOptions, *, listens: bool = False) -> int:
    """The connections that one supervisor and its children hold at most.

    Those to the database of the queue: a task that uses another one, or threads of its
    own, comes on top. With ``listens`` each worker hears of new jobs on one more.
    """
    workers = sum(
        each.processes * connections_of(each, listens=listens)
        for each in options.effective_workers
    )
    scheduler = CHILD
    dispatchers = CHILD * len(options.effective_dispatchers)
    return SUPERVISOR + workers + dispatchers + scheduler


def connections_of(worker: WorkerConfiguration, *, listens: bool = False) -> int:
    """The connections that one process of this worker holds at most."""
    coroutines = COROUTINES if worker.coroutines else 0
    isolated = worker.most_isolated if worker.isolation == "process" else 0
    return CHILD + worker.threads + coroutines + isolated + listens


def worker_processes(options: ConfigurationOptions) -> int:
    """How many processes run tasks."""
    return sum(each.processes for each in options.effective_workers)
