"""How jobs have failed, and who is asked to end one that runs."""

import robust_queue.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('robust_queue', '0002_autovacuum'),
    ]

    operations = [
        migrations.CreateModel(
            name='Cancellation',
            fields=[
                ('job_id', robust_queue.fields.IdField(primary_key=True, serialize=False, verbose_name='job')),
                ('requested_at', models.DateTimeField(verbose_name='requested at')),
            ],
            options={
                'verbose_name': 'cancellation',
                'verbose_name_plural': 'cancellations',
                'db_table': 'robust_queue_cancellations',
            },
        ),
        migrations.AddField(
            model_name='attempt',
            name='kind',
            field=robust_queue.fields.NameField(blank=True, choices=[('', 'error'), ('timed_out', 'timed out'), ('crashed', 'crashed'), ('cancelled', 'cancelled'), ('discarded', 'discarded'), ('expired', 'expired')], db_default='', default='', max_length=16, verbose_name='kind'),
        ),
        migrations.AddField(
            model_name='failedexecution',
            name='kind',
            field=robust_queue.fields.NameField(blank=True, choices=[('', 'error'), ('timed_out', 'timed out'), ('crashed', 'crashed'), ('cancelled', 'cancelled'), ('discarded', 'discarded'), ('expired', 'expired')], db_default='', default='', max_length=16, verbose_name='kind'),
        ),
    ]
