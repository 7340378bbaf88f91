"""The HTTP API: its tokens, and requests that are known when they come again."""

import uuid

import django.core.validators
import robust_queue.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('robust_queue', '0008_dashboards'),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', robust_queue.fields.IdField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', robust_queue.fields.NameField(help_text='What it is for, and who has it.', max_length=128, verbose_name='name')),
                ('digest', robust_queue.fields.NameField(editable=False, max_length=64, verbose_name='digest')),
                ('scopes', models.TextField(verbose_name='scopes')),
                ('created_at', models.DateTimeField(verbose_name='created at')),
                ('created_by', robust_queue.fields.NameField(blank=True, default='', max_length=150, verbose_name='created by')),
                ('expires_at', models.DateTimeField(blank=True, help_text='Empty: never.', null=True, verbose_name='expires at')),
                ('last_used_at', models.DateTimeField(blank=True, help_text='To the minute.', null=True, verbose_name='last used at')),
                ('revoked_at', models.DateTimeField(blank=True, null=True, verbose_name='revoked at')),
                ('requests_per_minute', models.PositiveIntegerField(blank=True, help_text='Limit for this token. Empty: the setting api_requests_per_minute.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='requests per minute')),
            ],
            options={
                'verbose_name': 'API token',
                'verbose_name_plural': 'API tokens',
                'db_table': 'robust_queue_api_tokens',
            },
        ),
        migrations.CreateModel(
            name='NamedRequest',
            fields=[
                ('key', robust_queue.fields.NameField(max_length=64, primary_key=True, serialize=False, verbose_name='hashed name')),
                ('sent', robust_queue.fields.NameField(max_length=64, verbose_name='digest of what was asked for')),
                ('job_id', robust_queue.fields.IdField(verbose_name='job')),
                ('expires_at', models.DateTimeField(verbose_name='expires at')),
            ],
            options={
                'verbose_name': 'named request',
                'verbose_name_plural': 'named requests',
                'db_table': 'robust_queue_named_requests',
                'indexes': [models.Index(fields=['expires_at'], name='rqueue_request_expiry')],
            },
        ),
        migrations.AlterField(
            model_name='operation',
            name='verb',
            field=robust_queue.fields.NameField(choices=[('retry', 'retry'), ('discard', 'discard'), ('cancel', 'cancel'), ('run_now', 'run now'), ('clear', 'clear')], max_length=16, verbose_name='what'),
        ),
    ]
