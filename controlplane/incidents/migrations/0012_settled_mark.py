"""Up to where the log has told how changes ended. A new table: what runs the version before goes on without it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0015_principals"),
        ("incidents", "0011_client_accountable"),
    ]

    operations = [
        migrations.CreateModel(
            name="SettledMark",
            fields=[
                (
                    "environment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="settled_mark",
                        serialize=False,
                        to="catalog.environment",
                    ),
                ),
                ("generation", models.PositiveBigIntegerField()),
                ("open", models.TextField(blank=True, db_default="", default="")),
            ],
        ),
    ]
