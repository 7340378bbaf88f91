"""Flow control: who shares a slot, what is unique, how fast, and whose turn it is."""

import robust_queue.fields
from django.db import migrations, models


# Every change of a count leaves a dead row, which is best replaced on its own page.
SETTINGS = {
    "fillfactor": "50",
    "autovacuum_vacuum_scale_factor": "0",
    "autovacuum_vacuum_threshold": "1000",
    "autovacuum_vacuum_cost_delay": "0",
}


def count_in_place(apps, schema_editor):
    """Have PostgreSQL change counts of slots without a word to any index."""
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        # Made by Django for patterns, of which nobody asks for any.
        cursor.execute(
            "SELECT indexname FROM pg_indexes"
            " WHERE schemaname = ANY (current_schemas(false))"
            " AND tablename = 'robust_queue_semaphores'"
            " AND indexdef LIKE '%%varchar_pattern_ops%%'",
            (),
        )
        names = [name for (name,) in cursor.fetchall()]
    for name in names:
        schema_editor.execute(f"DROP INDEX {schema_editor.quote_name(name)}")
    values = ", ".join(f"{name} = {value}" for name, value in SETTINGS.items())
    schema_editor.execute(f"ALTER TABLE robust_queue_semaphores SET ({values})")


def count_as_usual(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        names = ", ".join(SETTINGS)
        schema_editor.execute(f"ALTER TABLE robust_queue_semaphores RESET ({names})")


class Migration(migrations.Migration):

    dependencies = [
        ('robust_queue', '0004_isolated_runs'),
    ]

    operations = [
        migrations.CreateModel(
            name='RateBucket',
            fields=[
                ('key', robust_queue.fields.NameField(max_length=255, primary_key=True, serialize=False, verbose_name='key')),
                ('level', models.FloatField(help_text='What is left to be used.', verbose_name='level')),
                ('counted_at', models.DateTimeField(verbose_name='counted at')),
                ('last_id', robust_queue.fields.IdField(blank=True, help_text='Who was told to come back then.', null=True, verbose_name='last')),
                ('spread_to', models.DateTimeField(blank=True, help_text='Jobs that came too early are told to come back until then.', null=True, verbose_name='spread to')),
            ],
            options={
                'verbose_name': 'rate bucket',
                'verbose_name_plural': 'rate buckets',
                'db_table': 'robust_queue_rate_buckets',
            },
        ),
        migrations.CreateModel(
            name='TaskPause',
            fields=[
                ('task_path', robust_queue.fields.NameField(max_length=255, primary_key=True, serialize=False, verbose_name='task')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='paused at')),
                ('until', models.DateTimeField(blank=True, help_text='Empty: until it is resumed.', null=True, verbose_name='until')),
            ],
            options={
                'verbose_name': 'pause of a task',
                'verbose_name_plural': 'pauses of tasks',
                'db_table': 'robust_queue_task_pauses',
            },
        ),
        migrations.CreateModel(
            name='Tuning',
            fields=[
                ('process_id', robust_queue.fields.IdField(primary_key=True, serialize=False, verbose_name='process')),
                ('threads', models.PositiveIntegerField(blank=True, null=True, verbose_name='threads')),
                ('queues', models.TextField(blank=True, default='', help_text='Separated by commas.', verbose_name='queues')),
                ('requested_at', models.DateTimeField(auto_now=True, verbose_name='requested at')),
            ],
            options={
                'verbose_name': 'tuning',
                'verbose_name_plural': 'tunings',
                'db_table': 'robust_queue_tunings',
            },
        ),
        migrations.AddField(
            model_name='blockedexecution',
            name='other_keys',
            field=robust_queue.fields.NameField(blank=True, db_default='', default='', help_text='Of which it needs a slot as well.', max_length=1024, verbose_name='other keys'),
        ),
        migrations.AddField(
            model_name='claimedexecution',
            name='slot_id',
            field=robust_queue.fields.IdField(blank=True, help_text='Jobs that run one after the other have one slot in common.', null=True, verbose_name='slot'),
        ),
        migrations.AddField(
            model_name='job',
            name='partition_key',
            field=robust_queue.fields.NameField(blank=True, db_default='', default='', max_length=128, verbose_name='partition'),
        ),
        migrations.AddField(
            model_name='job',
            name='unique_key',
            field=robust_queue.fields.NameField(blank=True, db_default='', default='', max_length=64, verbose_name='unique key'),
        ),
        migrations.AddField(
            model_name='pause',
            name='until',
            field=models.DateTimeField(blank=True, help_text='Empty: until it is resumed.', null=True, verbose_name='until'),
        ),
        migrations.AddField(
            model_name='readyexecution',
            name='partition_key',
            field=robust_queue.fields.NameField(blank=True, db_default='', default='', max_length=128, verbose_name='partition'),
        ),
        migrations.RemoveIndex(
            model_name='blockedexecution',
            name='rqueue_blocked_expiry',
        ),
        migrations.RemoveField(
            model_name='blockedexecution',
            name='expires_at',
        ),
        migrations.AlterField(
            model_name='blockedexecution',
            name='concurrency_key',
            field=robust_queue.fields.NameField(help_text='The one it waits for.', max_length=255, verbose_name='concurrency key'),
        ),
        migrations.AlterField(
            model_name='job',
            name='concurrency_key',
            field=robust_queue.fields.NameField(blank=True, default='', max_length=1024, verbose_name='concurrency key'),
        ),
        migrations.RemoveIndex(
            model_name='semaphore',
            name='rqueue_semaphore_expiry',
        ),
        migrations.AddField(
            model_name='semaphore',
            name='holder_id',
            field=robust_queue.fields.IdField(blank=True, help_text='Took a slot last.', null=True, verbose_name='latest holder'),
        ),
        migrations.AlterField(
            model_name='semaphore',
            name='expires_at',
            field=models.DateTimeField(help_text='From then on its count is looked through.', verbose_name='expires at'),
        ),
        migrations.AddIndex(
            model_name='readyexecution',
            index=models.Index(condition=models.Q(('partition_key', ''), _negated=True), fields=['queue_name', 'partition_key', 'priority', 'job'], name='rqueue_poll_by_partition'),
        ),
        migrations.AddIndex(
            model_name='ratebucket',
            index=models.Index(fields=['counted_at'], name='rqueue_rate_counted'),
        ),
        migrations.RunPython(
            count_in_place, count_as_usual, hints={"model_name": "semaphore"}
        ),
    ]
