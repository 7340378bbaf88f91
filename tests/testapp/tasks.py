"""Tasks for the tests. Each does one thing that a test wants to see."""

import asyncio
import functools
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import DatabaseError, connection, connections, transaction
from django.utils import timezone, translation

from robust_queue import current_job, task
from robust_queue.compat import signals  # noqa: F401
from tests.testapp.models import Customer

performed = []


@task
def note(*args, **kwargs):
    performed.append((args, kwargs))


@task
def add(a, b=0):
    return a + b


@task
def with_secret_defaults(
    value=("x",),
    *,
    api_key="hunter2",
    options={"password": "hunter2"},  # noqa: B006
):
    return value


def with_one(function):
    @functools.wraps(function)
    def outer(value):
        return function(1, value)

    return outer


@task
@with_one
def added_to_one(one, value):
    return one + value


@task
def echo(value):
    return value


@task
def typed(
    number: int,
    *,
    when: datetime | None = None,
    key: UUID | None = None,
    price: Decimal | None = None,
    words: Sequence[str] = (),
    customer: Customer | None = None,
):
    return number


@task
async def add_async(a, b=0):
    await asyncio.sleep(0)
    return a + b


@task
def explode(message="boom"):
    raise ValueError(message)


@task
def leave():
    raise SystemExit("leaving")


@task
def interrupt():
    raise KeyboardInterrupt


@task
def recurse_for_ever():
    recurse_for_ever.func()


@task
def return_a_function():
    return lambda: None


@task(queue_name="mail", priority=10)
def mail(address):
    performed.append(("mail", address))


@task(backend="other")
def elsewhere(value=None):
    performed.append(("elsewhere", value))


@task(takes_context=True)
def attempt_number(context, extra=0):
    return context.attempt + extra


@task
def travel():
    before = translation.get_language(), timezone.get_current_timezone_name()
    translation.activate("de")
    timezone.activate(ZoneInfo("Asia/Tokyo"))
    return before


@task
def context_or_not(context):
    return context


@task(enqueue_on_commit=False)
def at_once(value=None):
    performed.append(("at once", value))


@task(backend="immediate", enqueue_on_commit=True)
def immediate(value):
    return value


@task
def rename(customer, name):
    customer.name = name
    customer.save()


@task
def break_the_transaction():
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")


@task
def wrap_a_database_error():
    try:
        break_the_transaction.func()
    except Exception as error:
        raise ValueError("wrapped") from error


@task
def save_twice(name):
    customer = Customer.objects.create(name=name)
    Customer(pk=customer.pk, name="again").save(force_insert=True)


@task
def swallow_a_database_error(name):
    try:
        break_the_transaction.func()
    except DatabaseError:
        return "swallowed"


@task
def recover_and_fail(name):
    Customer.objects.create(name=name)
    try:
        with transaction.atomic():
            break_the_transaction.func()
    except DatabaseError:
        raise ValueError("after recovering") from None


@task
def break_another_database():
    with connections["other"].cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")


@task
def leave_a_transaction_open(by="atomic"):
    if by == "autocommit":
        transaction.set_autocommit(False)
    else:
        transaction.atomic().__enter__()
    Customer.objects.create(name="nobody will see")
    if by == "closed":
        connection.close()


@task
def enqueue_again(times):
    performed.append(("again", times))
    if times:
        enqueue_again.enqueue(times - 1)


@task
def create_customer(name):
    return Customer.objects.create(name=name)


def minutes(exception, attempt):
    return timedelta(minutes=attempt)


@task(max_attempts=3, backoff=minutes, takes_context=True)
def succeed_at_last(context, attempt=3):
    performed.append(("attempt", context.attempt))
    if context.attempt < attempt:
        raise OSError(f"attempt {context.attempt}\nof many")
    return context.attempt


@task(max_attempts=3, backoff=lambda exception, attempt: timedelta(0))
def fail_at_once_again():
    raise OSError("again")


@task(max_attempts=3, backoff=lambda exception, attempt: None)
def see_no_use_in_trying():
    raise OSError("no use")


@task(max_attempts=3, backoff=lambda exception, attempt: 1 / 0)
def stumble_over_its_backoff():
    raise OSError("stumbles")


def _job_here():
    job = current_job()
    return [job.id, job.task, job.queue, job.attempt]


def _locale_here():
    return [translation.get_language(), str(timezone.get_current_timezone())]


@task
def job_around():
    return _job_here()


@task
async def job_around_coroutine():
    await asyncio.sleep(0)
    return _job_here()


@task
def locale_around():
    return _locale_here()


@task
async def locale_around_coroutine():
    await asyncio.sleep(0)
    return _locale_here()
