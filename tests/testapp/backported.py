"""Tasks declared with the backport."""

from django_tasks import task


@task()
def greet(name):
    return f"Hello, {name}"


@task(takes_context=True)
def family_of_the_context(context):
    return type(context).__module__


@task(enqueue_on_commit=False)
def at_once():
    return None


@task(backend="backport_immediate")
def immediate(value):
    return value
