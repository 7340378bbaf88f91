"""Is everything there that the runtime needs?"""

from django.db import connections
from django.db.migrations.executor import MigrationExecutor


def pending_migrations(database: str) -> list[str]:
    """The migrations of Robust Queue that have not been applied yet."""
    executor = MigrationExecutor(connections[database])
    leaves = executor.loader.graph.leaf_nodes("robust_queue")
    plan = executor.migration_plan(leaves)
    return [each.name for each, _ in plan if each.app_label == "robust_queue"]
