"""The long tests have the fixtures of the shorter ones."""

from tests.processes.conftest import supervised, witness, witnessed

__all__ = ["supervised", "witness", "witnessed"]
