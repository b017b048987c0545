from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0021_freezes"),
    ]

    operations = [
        migrations.AddField(
            model_name="resource",
            name="labels",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AlterField(
            model_name="change",
            name="kind",
            field=models.CharField(
                choices=[
                    ("resources", "resources"),
                    ("policy", "policy"),
                    ("quarantine", "quarantine"),
                    ("access", "access"),
                    ("rollback", "rollback"),
                    ("labels", "labels"),
                ],
                max_length=16,
            ),
        ),
    ]
