"""Tasks of which one at a time is enough, each in its own way."""

from datetime import timedelta

from robust_queue import Snooze, Unique, task
from robust_queue.models import UniqueLock
from tests.testapp.models import Mark
from tests.testapp.tasks import performed

UNSTORABLE = object()


@task(unique=Unique())
def once(value=None, other=0):
    performed.append(value)
    return value


@task(unique=Unique(), takes_context=True)
def once_with_context(context, value):
    return value


@task(unique=Unique(on_conflict="discard"))
def once_or_discarded(value=None):
    performed.append(value)


@task(unique=Unique(by=("customer",), on_conflict="replace"))
def latest(customer, text=""):
    performed.append(text)


@task(unique=Unique(on_conflict="raise"))
def once_or_error(value=None):
    performed.append(value)


@task(unique=Unique(period=timedelta(hours=1)))
def hourly(value=None):
    performed.append(value)


@task(unique=Unique(by=("customer",), period=3600, on_conflict="replace"))
def latest_of_the_hour(customer, text=""):
    performed.append(text)


@task(unique=Unique(until="started"))
def until_started(value=None):
    """Tells what a second enqueue would have found at this moment."""
    performed.append(UniqueLock.objects.count())


@task(unique=Unique(until="started"))
async def until_started_async(value=None):
    performed.append(await UniqueLock.objects.acount())


@task(unique=Unique(), max_attempts=2, backoff=[3600])
def once_but_tried_twice():
    raise ValueError("boom")


@task(unique=Unique())
def once_and_snoozed():
    raise Snooze("later", until=timedelta(hours=1))


@task(unique=Unique())
def once_and_failed(value=None):
    raise ValueError("boom")


@task(unique=Unique(), keep_result=0)
def once_without_trace():
    pass


@task(unique=Unique(period=3600), keep_result=0)
def hourly_without_trace():
    pass


@task(unique=Unique(by=lambda value=None, **rest: value))
def keyed(value=None, **rest):
    pass


@task(unique=Unique(by=lambda: 1 / 0))
def with_a_broken_key():
    pass


@task(unique=Unique(by=("nothing",)))
def by_a_stranger(value=None):
    pass


@task(unique=Unique(by="value"))
def by_a_text_that_names_a_parameter(value):
    pass


@task(unique=Unique(by=("value",), group="both"))
def first_of_a_group(value):
    pass


@task(unique=Unique(by=("value",), group="both"))
def second_of_a_group(value, other=1):
    pass


@task(unique=Unique(by="all of them"))
def all_the_same(value=None):
    pass


@task(unique=Unique())
def with_an_odd_default(value, marker=UNSTORABLE):
    pass


@task(backend="other", unique=Unique())
def once_elsewhere(value=None):
    pass


@task(backend="other", unique=Unique(by=("customer",), on_conflict="replace"))
def latest_elsewhere(customer, text=""):
    pass


@task(unique=Unique(until="started"))
def count_marks():
    performed.append(Mark.objects.count())


@task(unique=Unique(by=("customer",)))
def returned(customer):
    pass


@task(unique=Unique(by=("customer",), on_conflict="discard"))
def discarded(customer):
    pass


@task(unique=Unique(by=("customer",), on_conflict="raise"))
def refused(customer):
    pass
