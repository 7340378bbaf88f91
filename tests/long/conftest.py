"""The long tests have the fixtures of the shorter ones."""

from tests.processes.conftest import (
    server,
    server_of_module,
    supervised,
    witness,
    witnessed,
)

__all__ = ["server", "server_of_module", "supervised", "witness", "witnessed"]
