import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0022_labels"),
        ("clients", "0012_stream_polls"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClientLabels",
            fields=[
                (
                    "client",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="given",
                        serialize=False,
                        to="clients.client",
                    ),
                ),
                ("labels", models.TextField()),
                ("gone_at", models.DateTimeField(null=True)),
                (
                    "environment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="catalog.environment"
                    ),
                ),
            ],
        ),
    ]
