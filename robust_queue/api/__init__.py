"""The HTTP API: look after the queue, and work for it, from anywhere.

It takes the extra ``robust-queue[api]``. Nothing else in the package knows of it.
"""

try:
    import ninja  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "ninja":
        raise
    raise ImportError(
        "The HTTP API needs an extra: python -m pip install 'robust-queue[api]'"
    ) from error
