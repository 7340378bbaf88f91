"""Tasks that are limited in more than one way."""

import time
from datetime import timedelta

from robust_queue import Concurrency, RateLimit, Unique, task
from tests.testapp.tasks import performed

HOT = Concurrency(key="hot", group="hot and more")
TWO = Concurrency(key="two", group="two of them", limit=2)


@task(concurrency=HOT)
def hot_and_free(label):
    performed.append(label)


@task(concurrency=HOT)
def hot_and_another(label):
    performed.append(label)


@task(concurrency=HOT, rate_limit=RateLimit("1/hour", burst=2))
def hot_and_rated(label):
    performed.append(label)


@task(rate_limit=RateLimit("1000000/s"))
def rated_and_free(label, seconds=0.0):
    time.sleep(seconds)


@task(concurrency=TWO)
def one_of_two(label):
    performed.append(label)


@task(concurrency=TWO, unique=Unique(by=("customer",), on_conflict="replace"))
def latest_of_two(customer, text=""):
    performed.append(text)


@task(
    concurrency=HOT,
    unique=Unique(until="started"),
    rate_limit=RateLimit("1/hour"),
    max_attempts=2,
    backoff=lambda error, attempt: timedelta(0),
)
def everything(value):
    performed.append(value)


@task(unique=Unique(until="started"), timeout=timedelta(seconds=0.5))
def unique_and_timed(value=None):
    performed.append(value)
