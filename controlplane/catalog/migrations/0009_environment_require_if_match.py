from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0008_lasting_key"),
    ]

    operations = [
        migrations.AddField(
            model_name="environment",
            name="require_if_match",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
