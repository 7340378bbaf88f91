"""Tasks that may begin only so often."""

import asyncio

from robust_queue import RateLimit, task
from tests.testapp import tasks


def noted(label, *args, **kwargs):
    tasks.performed.append(label)


slow = task(rate_limit=RateLimit("1/hour", burst=2))(noted)


@task(rate_limit=RateLimit("1/hour", key=lambda label, to=None: to))
def send(label, to=None):
    noted(label)


@task(rate_limit=RateLimit("1/hour", key="api", group="partner", burst=3))
def ask(label):
    noted(label)


@task(rate_limit=RateLimit("1/hour", key="api", group="partner", burst=3))
def ask_again(label):
    noted(label)


@task(rate_limit=RateLimit("10/hour", burst=10, weight=lambda pages: pages))
def print_out(pages):
    noted(pages)


@task(rate_limit="1/hour")
async def wait(label):
    await asyncio.sleep(0)
    noted(label)


@task(rate_limit="1/hour", isolation="process")
def alone(label):
    noted(label)
