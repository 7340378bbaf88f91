"""Vacuum the hot tables of PostgreSQL early.

Every transition deletes a row. By default a table is vacuumed once a fifth of it is
dead, which for a table that is empty most of the time means: whenever the claims have
to step over thousands of dead rows already.
"""

from django.db import migrations

HOT_TABLES = [
    "robust_queue_ready_executions",
    "robust_queue_scheduled_executions",
    "robust_queue_claimed_executions",
    "robust_queue_blocked_executions",
]
SETTINGS = {
    "autovacuum_vacuum_scale_factor": "0",
    "autovacuum_vacuum_threshold": "1000",
    "autovacuum_vacuum_cost_delay": "0",
    "autovacuum_analyze_scale_factor": "0",
    "autovacuum_analyze_threshold": "1000",
}


def vacuum_early(apps, schema_editor):
    values = ", ".join(f"{name} = {value}" for name, value in SETTINGS.items())
    _alter(schema_editor, f"SET ({values})")


def vacuum_as_usual(apps, schema_editor):
    _alter(schema_editor, f"RESET ({', '.join(SETTINGS)})")


def _alter(schema_editor, change):
    if schema_editor.connection.vendor != "postgresql":
        return
    for table in HOT_TABLES:
        schema_editor.execute(f"ALTER TABLE {table} {change}")


class Migration(migrations.Migration):
    dependencies = [("robust_queue", "0001_initial")]

    operations = [
        migrations.RunPython(
            vacuum_early, vacuum_as_usual, hints={"model_name": "readyexecution"}
        )
    ]
