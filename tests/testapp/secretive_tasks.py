"""Tasks that are told secrets, in every way in which a task can be told something."""

import functools
from dataclasses import dataclass

from robust_queue import storable, task


@storable
@dataclass
class Login:
    user: str
    password: str


def passed_on(function):
    @functools.wraps(function)
    def outer(*args, **kwargs):
        return function(*args, **kwargs)

    return outer


@task
def log_in(user, password, *, remember=False):
    return {"user": user, "session": "s3ss10n"}


@task(takes_context=True)
def log_in_here(context, user, password):
    return user


@task
@passed_on
def log_in_again(user, password):
    return user


@task
def share(user, *secrets):
    return user


@task
def send(request, **headers):
    return request


@task
def refuse(user, password):
    raise LookupError("no such user")
