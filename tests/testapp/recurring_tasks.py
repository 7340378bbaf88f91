"""Recurring tasks for the tests. Only who imports this module has them."""

from robust_queue import recurring, task

greeted = []


@recurring(schedule="0 12 * * *", key="rot the brains at noon")
@task()
def ballerina():
    greeted.append("capuccina")


@recurring(
    schedule="0 12 * * *",
    args=(10, 5),
    kwargs={"name": "Sahur"},
    key="count down at noon",
)
@task()
def countdown_greeting(start, to, name="Michael"):
    greeted.append((start, to, name))


@recurring(schedule="0 10 * * *", args=("Alice",), key="greet_alice")
@recurring(schedule="0 12 * * *", args=("Bob",), key="greet_bob")
@task()
def greet(name):
    greeted.append(name)


@recurring(schedule="* * * * *", key="own", args=(1,))
@recurring(schedule="* * * * *", key="given", queue_name="urgent", priority=7)
@task(queue_name="reports", priority=3)
def report(number=0):
    greeted.append(number)


@recurring(schedule="@hourly", key="elsewhere")
@task(backend="other")
def elsewhere():
    greeted.append("elsewhere")


@recurring(schedule="@hourly", key="immediate", args=("now",))
@task(backend="immediate")
def immediate(value):
    greeted.append(value)


@task(takes_context=True)
def with_context(context, value):
    greeted.append(value)
