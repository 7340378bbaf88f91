"""Who may see arguments that are redacted: a permission."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('robust_queue', '0006_recurring_tasks'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='job',
            options={'permissions': [('view_unredacted_arguments', 'Can view arguments that are redacted')], 'verbose_name': 'job', 'verbose_name_plural': 'jobs'},
        ),
    ]
