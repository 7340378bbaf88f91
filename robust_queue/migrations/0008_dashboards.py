"""Dashboards: rollups, operations, permissions, memory and orders of processes."""

import robust_queue.fields
import robust_queue.identifiers
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('robust_queue', '0007_redaction'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='job',
            options={'permissions': [('view_arguments', 'Can view arguments, results and errors'), ('view_unredacted_arguments', 'Can view arguments that are redacted'), ('retry_job', 'Can retry jobs'), ('discard_job', 'Can discard jobs and clear queues'), ('cancel_job', 'Can cancel jobs'), ('run_job', 'Can run scheduled jobs and recurring tasks now'), ('pause_queue', 'Can pause and resume queues and tasks')], 'verbose_name': 'job', 'verbose_name_plural': 'jobs'},
        ),
        migrations.AlterModelOptions(
            name='process',
            options={'permissions': [('manage_process', 'Can quiet, stop and tune processes')], 'verbose_name': 'process', 'verbose_name_plural': 'processes'},
        ),
        migrations.AddField(
            model_name='process',
            name='memory',
            field=models.PositiveBigIntegerField(blank=True, help_text='Resident, in bytes.', null=True, verbose_name='memory'),
        ),
        migrations.AddField(
            model_name='tuning',
            name='is_quiet',
            field=models.BooleanField(db_default=False, default=False, help_text='Goes on with what it has, and takes nothing new.', verbose_name='quiet'),
        ),
        migrations.AddField(
            model_name='tuning',
            name='is_to_stop',
            field=models.BooleanField(db_default=False, default=False, help_text='Ends when what it has is over. A worker is replaced.', verbose_name='to stop'),
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', robust_queue.fields.IdField(default=robust_queue.identifiers.new_job_id, editable=False, primary_key=True, serialize=False)),
                ('verb', robust_queue.fields.NameField(choices=[('retry', 'retry'), ('discard', 'discard'), ('cancel', 'cancel'), ('run_now', 'run now')], max_length=16, verbose_name='what')),
                ('criteria', models.TextField(help_text='As JSON.', verbose_name='which jobs')),
                ('requested_by', robust_queue.fields.NameField(blank=True, default='', max_length=255, verbose_name='by')),
                ('requested_at', models.DateTimeField(verbose_name='requested at')),
                ('started_at', models.DateTimeField(blank=True, null=True, verbose_name='started at')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished at')),
                ('stopped_at', models.DateTimeField(blank=True, null=True, verbose_name='stopped at')),
                ('process_id', robust_queue.fields.IdField(blank=True, null=True, verbose_name='process')),
                ('leased_until', models.DateTimeField(blank=True, null=True, verbose_name='leased until')),
                ('state', robust_queue.fields.NameField(blank=True, default='', max_length=16, verbose_name='state')),
                ('cursor', robust_queue.fields.IdField(blank=True, null=True, verbose_name='latest job')),
                ('newest', robust_queue.fields.IdField(verbose_name='newest job')),
                ('expected', models.PositiveBigIntegerField(blank=True, null=True, verbose_name='expected')),
                ('matched', models.PositiveBigIntegerField(default=0, verbose_name='met')),
                ('done', models.PositiveBigIntegerField(default=0, verbose_name='done')),
                ('passed_over', models.TextField(blank=True, default='', verbose_name='passed over')),
                ('problem', models.TextField(blank=True, default='', verbose_name='problem')),
                ('failures', models.PositiveSmallIntegerField(default=0, verbose_name='failures in a row')),
            ],
            options={
                'verbose_name': 'operation',
                'verbose_name_plural': 'operations',
                'db_table': 'robust_queue_operations',
                'indexes': [models.Index(fields=['finished_at', 'id'], name='rqueue_open_operations')],
            },
        ),
        migrations.CreateModel(
            name='Rollup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('queue_name', robust_queue.fields.NameField(blank=True, help_text='Empty: all together.', max_length=128, verbose_name='queue')),
                ('span', models.PositiveIntegerField(help_text='In seconds.', verbose_name='span')),
                ('at', models.DateTimeField(help_text='A multiple of the span.', verbose_name='from')),
                ('process_id', robust_queue.fields.IdField(verbose_name='process')),
                ('finished', models.PositiveIntegerField(default=0, verbose_name='finished')),
                ('failed', models.PositiveIntegerField(default=0, verbose_name='failed attempts')),
                ('waits', models.TextField(blank=True, default='', verbose_name='waiting times')),
                ('runs', models.TextField(blank=True, default='', verbose_name='run times')),
                ('depth', models.PositiveIntegerField(blank=True, null=True, verbose_name='ready jobs')),
                ('latency', models.PositiveBigIntegerField(blank=True, help_text='In milliseconds.', null=True, verbose_name='longest wait')),
            ],
            options={
                'verbose_name': 'rollup',
                'verbose_name_plural': 'rollups',
                'db_table': 'robust_queue_rollups',
                'indexes': [models.Index(fields=['span', 'at'], name='rqueue_old_rollups')],
                'constraints': [models.UniqueConstraint(fields=('queue_name', 'span', 'at', 'process_id'), name='rqueue_one_rollup_each')],
            },
        ),
    ]
