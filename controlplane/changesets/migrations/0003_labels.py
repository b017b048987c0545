from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("changesets", "0002_rules_and_groups"),
    ]

    operations = [
        migrations.AddField(
            model_name="changesetentry",
            name="labels",
            field=models.JSONField(null=True),
        ),
    ]
