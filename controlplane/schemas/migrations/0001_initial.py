import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="DescriptorSet",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63, unique=True)),
                ("digest", models.CharField(max_length=64)),
                ("content", models.BinaryField()),
                ("files", models.PositiveIntegerField()),
                ("messages", models.PositiveIntegerField()),
                ("added_by", models.CharField(max_length=255)),
                ("added_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
    ]
