from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clients", "0009_accountable"),
    ]

    operations = [
        migrations.AddField(
            model_name="replica",
            name="place",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
        migrations.AddField(
            model_name="replica",
            name="replaced_at",
            field=models.DateTimeField(null=True),
        ),
    ]
