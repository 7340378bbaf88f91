"""Tasks that say how long what became of them is kept."""

from datetime import timedelta

from robust_queue import task


@task(keep_result=timedelta(days=365), keep_failure=timedelta(days=7))
def keep_for_long():
    return "worth knowing"


@task(keep_result=timedelta(minutes=5), keep_failure=timedelta(0))
def keep_hardly():
    return "soon forgotten"
