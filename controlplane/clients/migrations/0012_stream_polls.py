from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clients", "0011_holdings"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="stream",
            name="stream_variant_known",
        ),
        migrations.AlterField(
            model_name="stream",
            name="variant",
            field=models.CharField(choices=[("sotw", "sotw"), ("delta", "delta"), ("poll", "poll")], max_length=8),
        ),
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.CheckConstraint(
                condition=models.Q(("variant__in", ("sotw", "delta", "poll"))), name="stream_variant_known"
            ),
        ),
    ]
