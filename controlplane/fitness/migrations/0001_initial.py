from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ProcessState",
            fields=[
                ("id", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("role", models.CharField(max_length=16)),
                ("host", models.CharField(max_length=255)),
                ("pid", models.PositiveIntegerField()),
                ("seen_at", models.DateTimeField()),
                ("wrong", models.JSONField(default=list)),
            ],
        ),
    ]
