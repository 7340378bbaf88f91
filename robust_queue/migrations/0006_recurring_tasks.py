"""Recurring tasks: missed instants, overlaps, orphans, and a history of its own."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('robust_queue', '0005_flow_control'),
    ]

    operations = [
        migrations.AddField(
            model_name='recurringexecution',
            name='by_hand',
            field=models.BooleanField(db_default=False, default=False, help_text='Somebody wanted a run now: it is no instant of the schedule.', verbose_name='by hand'),
        ),
        migrations.AddField(
            model_name='recurringexecution',
            name='exception_class',
            field=models.CharField(blank=True, db_default='', default='', max_length=255, verbose_name='exception'),
        ),
        migrations.AddField(
            model_name='recurringexecution',
            name='finished_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='finished at'),
        ),
        migrations.AddField(
            model_name='recurringexecution',
            name='outcome',
            field=models.CharField(choices=[('enqueued', 'enqueued'), ('succeeded', 'succeeded'), ('failed', 'failed'), ('gone', 'unknown, its job is gone'), ('handed_over', 'handed over to another backend'), ('skipped', 'skipped'), ('refused', 'could not be enqueued')], db_default='enqueued', default='enqueued', max_length=16, verbose_name='outcome'),
        ),
        migrations.AddField(
            model_name='recurringexecution',
            name='reason',
            field=models.CharField(blank=True, db_default='', default='', max_length=500, verbose_name='reason'),
        ),
        migrations.AddField(
            model_name='recurringexecution',
            name='skipped',
            field=models.PositiveIntegerField(blank=True, help_text='Empty if they are too many to be counted.', null=True, verbose_name='how many were skipped'),
        ),
        migrations.AddField(
            model_name='recurringexecution',
            name='skipped_until',
            field=models.DateTimeField(blank=True, null=True, verbose_name='skipped until'),
        ),
        migrations.AddField(
            model_name='recurringexecution',
            name='started_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='started at'),
        ),
        migrations.AddField(
            model_name='recurringtask',
            name='declared_at',
            field=models.DateTimeField(blank=True, help_text='When a scheduler last said that it is declared as it is here.', null=True, verbose_name='declared at'),
        ),
        migrations.AddField(
            model_name='recurringtask',
            name='declared_enabled',
            field=models.BooleanField(db_default=True, default=True, help_text='A change of the declaration counts, else what an operator says.', verbose_name='declared as enabled'),
        ),
        migrations.AddField(
            model_name='recurringtask',
            name='jitter',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Each run begins up to so many seconds later.', verbose_name='jitter'),
        ),
        migrations.AddField(
            model_name='recurringtask',
            name='missed_limit',
            field=models.PositiveIntegerField(db_default=100, default=100, help_text='If all are to be run: so many, the latest.', verbose_name='at most'),
        ),
        migrations.AddField(
            model_name='recurringtask',
            name='on_missed',
            field=models.CharField(choices=[('skip', 'skip them'), ('run_once', 'run once for all of them'), ('run_all', 'run all of them')], db_default='run_once', default='run_once', max_length=16, verbose_name='if instants are missed'),
        ),
        migrations.AddField(
            model_name='recurringtask',
            name='overlap',
            field=models.CharField(choices=[('allow', 'run both at the same time'), ('skip', 'skip the later one'), ('queue', 'run the later one afterwards')], db_default='allow', default='allow', max_length=16, verbose_name='if the run before is not over'),
        ),
        migrations.AddField(
            model_name='recurringtask',
            name='retired_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='retired at'),
        ),
        migrations.AlterField(
            model_name='recurringtask',
            name='timezone',
            field=models.CharField(blank=True, default='', help_text='Such as Europe/Madrid. Empty: that of the project.', max_length=64, verbose_name='time zone'),
        ),
        migrations.AddIndex(
            model_name='recurringexecution',
            index=models.Index(fields=['outcome', 'id'], name='rqueue_open_instants'),
        ),
    ]
