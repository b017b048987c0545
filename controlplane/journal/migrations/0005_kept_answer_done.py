from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("journal", "0004_principals"),
    ]

    operations = [
        migrations.AddField(
            model_name="keptanswer",
            name="done",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="keptanswer",
            name="change",
            field=models.CharField(blank=True, db_default="", default="", max_length=36),
        ),
    ]
