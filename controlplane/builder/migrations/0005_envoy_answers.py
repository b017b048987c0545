from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("builder", "0004_held_kinds"),
    ]

    operations = [
        migrations.CreateModel(
            name="EnvoyAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("question", models.CharField(max_length=64, unique=True)),
                ("refused", models.BooleanField()),
                ("text", models.CharField(max_length=500)),
            ],
        ),
    ]
