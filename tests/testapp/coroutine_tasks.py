"""Tasks that are coroutines. What they do is told in a file, or by rows."""

import asyncio
import os
import sys
import threading
import time
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, transaction
from django.utils import translation

from robust_queue import task
from robust_queue.compat import signals
from tests.testapp.models import Customer, Mark
from tests.testapp.witnessed_tasks import VARIABLE, hurry_path, tell

MODULES = ["tests.testapp.coroutine_tasks", "tests.testapp.witnessed_tasks"]

leftover = ContextVar("leftover", default="nothing")


def hold_up(sender, task_result, **kwargs):
    """One job holds up those that are to begin after it."""
    if "stuck" in task_result.args:
        time.sleep(60)


signals.task_started.connect(hold_up)


@task
async def nap(seconds):
    await asyncio.sleep(seconds)


@task
async def attend(label, seconds=0.0):
    """Tells when it begins and when it ends."""
    tell("begins", label)
    await asyncio.sleep(seconds)
    tell("ends", label)
    return label


@task(max_attempts=100, backoff=lambda exception, attempt: timedelta(milliseconds=50))
async def attend_again(label):
    """Lasts until it is to hurry, and runs again if its process dies."""
    tell("begins", label)
    while not hurry_path().exists():
        await asyncio.sleep(0.02)
    tell("ends", label)


@task
async def clean_up(label, seconds=60.0):
    """Tells how it ended, also if it is cancelled."""
    tell("begins", label)
    try:
        await asyncio.sleep(seconds)
    finally:
        tell("cleans-up", label)


@task
async def insist(label):
    """Does not let itself be cancelled."""
    tell("begins", label)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        tell("insists", label)
    return label


@task
async def count_customers(name):
    """Uses the async ORM, and synchronous code that uses the ORM."""
    await Customer.objects.acreate(name=name)
    names = [each.name async for each in Customer.objects.filter(name=name)]
    again = await sync_to_async(Customer.objects.filter(name=name).count)()
    elsewhere = await sync_to_async(threading.get_ident)()
    return [names, again, elsewhere == threading.get_ident()]


@task
async def there_and_back(name):
    """From the loop into a thread, onto the loop again, and into a thread again."""
    return await sync_to_async(async_to_sync(_create))(name)


async def _create(name):
    customer = await Customer.objects.acreate(name=name)
    return customer.name


@task
async def rename_in_transaction(name):
    def rename():
        with transaction.atomic():
            Customer.objects.create(name=name)
            raise ValueError(name)

    await sync_to_async(rename)()


@task
async def leave_a_transaction_open():
    await sync_to_async(transaction.atomic().__enter__)()


@task
async def store(label):
    """Uses the database, and fails with it."""
    await Mark.objects.acreate(label=label, pid=os.getpid())


@task
async def break_a_statement():
    def break_it():
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")

    await sync_to_async(break_it)()


@task
async def tell_session():
    """Which session of the server its queries are part of."""

    def ask():
        of_server = (
            "pg_backend_pid()"
            if connection.vendor == "postgresql"
            else "CONNECTION_ID()"
        )
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {of_server}")
            return cursor.fetchone()[0]

    return await sync_to_async(ask)()


@task
async def fail(message):
    await asyncio.sleep(0)
    raise ValueError(message)


@task
async def leave_politely():
    await asyncio.sleep(0)
    sys.exit(3)


@task
async def interrupt():
    raise KeyboardInterrupt


@task
async def run_out_of_memory():
    await asyncio.sleep(0)
    raise MemoryError


@task
async def cancel_itself():
    asyncio.current_task().cancel()
    await asyncio.sleep(60)


@task
async def start_something_that_exits():
    async def leave():
        sys.exit(3)

    await asyncio.create_task(leave())


@task
async def exit_when_told():
    while not Path(f"{os.environ[VARIABLE]}.exit").exists():
        await asyncio.sleep(0.02)
    os._exit(7)


@task
async def return_a_function():
    return lambda: None


@task(takes_context=True)
async def attempt_number(context, extra=0):
    return context.attempt + extra


@task
async def travel():
    """Activates a language and leaves a trace; tells what it has found."""
    found = [translation.get_language(), leftover.get()]
    translation.activate("de")
    leftover.set("something")
    await asyncio.sleep(0.01)
    return [*found, translation.get_language()]


is_blocked = threading.Event()


@task
async def block(seconds):
    is_blocked.set()
    time.sleep(seconds)


@task
async def block_in_a_task_of_its_own(seconds):
    async def sleep():
        time.sleep(seconds)

    await asyncio.gather(sleep(), asyncio.sleep(0))


@task
async def where_am_i():
    """The thread and the loop that it runs on."""
    return [threading.get_ident(), id(asyncio.get_running_loop())]


@task
async def query_later(label, seconds):
    """Uses the async ORM when it begins, and when it ends."""
    await Mark.objects.acreate(label=label, pid=os.getpid())
    await asyncio.sleep(seconds)
    return await Mark.objects.acount() > 0


@task
async def take_too_long():
    async with asyncio.timeout(0.05):
        await asyncio.sleep(60)
