"""Incidents are found by the resource they are about. An index: what runs the version before goes on with it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0017_canonical_names"),
        ("incidents", "0012_settled_mark"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(fields=["environment", "type", "name"], name="incident_by_name"),
        ),
    ]
