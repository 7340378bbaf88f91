"""Which tasks ran in processes of their own, and what they have written."""

import django.db.models.deletion
import robust_queue.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('robust_queue', '0003_failures'),
    ]

    operations = [
        migrations.CreateModel(
            name='IsolatedRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempts', models.PositiveSmallIntegerField(help_text='Which one this was, counted from one.', verbose_name='attempt')),
                ('node', robust_queue.fields.NameField(max_length=128, verbose_name='node')),
                ('pid', models.PositiveIntegerField(verbose_name='process number')),
                ('reserved_at', models.DateTimeField(verbose_name='reserved at')),
                ('started_at', models.DateTimeField(verbose_name='started at')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished at')),
                ('exit', models.CharField(blank=True, help_text='Empty if it lives on.', max_length=255, verbose_name='end of the process')),
                ('output', models.TextField(blank=True, help_text='The end of what the task has written.', verbose_name='output')),
                ('job', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='isolated_runs', to='robust_queue.job', verbose_name='job')),
            ],
            options={
                'verbose_name': 'isolated run',
                'verbose_name_plural': 'isolated runs',
                'db_table': 'robust_queue_isolated_runs',
                'ordering': ['job', 'attempts'],
                'constraints': [models.UniqueConstraint(fields=('job', 'attempts'), name='rqueue_run_counted_once')],
            },
        ),
    ]
