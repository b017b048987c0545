from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("incidents", "0010_opened_by"),
    ]

    operations = [
        migrations.AddField(
            model_name="incidentclient",
            name="accountable",
            field=models.CharField(blank=True, db_default="", max_length=100),
        ),
    ]
