"""Which of several limits of a task a key belongs to."""

from robust_queue import Concurrency, task
from robust_queue.flow.concurrency import keys_of, limit_of


@task(
    concurrency=[
        Concurrency(key=lambda tenant: tenant, limit=10, group="exports"),
        Concurrency(key=lambda tenant: tenant, limit=1, group="exports/one"),
    ]
)
def export(tenant):
    pass


def test_a_group_may_begin_like_another_one():
    found = {key: limit_of(export, key) for key in keys_of(export, ["a"], {}).split()}
    assert found == {"exports/a": 10, "exports/one/a": 1}
