"""What may be the name of a queue. Enqueue, pause and resume judge alike."""

from robust_queue import registry
from robust_queue.compat import AnyTask, InvalidTask

QUEUE_NAME_LENGTH = 128


def check_queue_name(name: object) -> None:
    """Refuse what cannot be the name of a queue."""
    if problem := queue_name_problem(name):
        raise InvalidTask(problem)


def check_queue_of_external(task: AnyTask) -> None:
    """Refuse a queue from which workers of this project would take an external task."""
    known = registry.external_queues()
    if task.queue_name not in known:
        raise InvalidTask(
            f"{task.module_path} is performed by workers outside, but the queue "
            f"{task.queue_name!r} is not one of external tasks: workers of this "
            f"project would take the job. Choose from: {', '.join(sorted(known))}."
        )


def queue_name_problem(name: object) -> str | None:
    """What is wrong with the name of a queue, as a sentence; None if nothing is."""
    if not isinstance(name, str) or not name or len(name) > QUEUE_NAME_LENGTH:
        return f"Queue {name!r}: a name has 1 to {QUEUE_NAME_LENGTH} characters."
    if "*" in name or not name.isprintable() or name != name.strip():
        return (
            f"Queue {name!r}: a name has no '*', no control characters and no "
            "space at its ends."
        )
    return None
