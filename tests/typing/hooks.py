"""What a type checker knows about hooks and the context. Nothing runs it."""

from typing import assert_type

import robust_queue
from robust_queue import current_job
from robust_queue.signals import ProcessFacts


@robust_queue.on_worker_start
def warm_up() -> None: ...


@robust_queue.on_exit
def tell(process: ProcessFacts) -> int:
    return process.pid


def use_them() -> None:
    assert_type(tell(ProcessFacts(kind="", name="", pid=1, database="")), int)
    job = current_job()
    assert_type(job.attempt if job else 0, int)


def refuse_them() -> None:
    robust_queue.on_start(3)  # type: ignore[type-var]
    tell(1)  # type: ignore[arg-type]
