from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_browsers")]

    operations = [
        migrations.RemoveConstraint(model_name="rolegrant", name="group_grant_once"),
        migrations.AddConstraint(
            model_name="rolegrant",
            constraint=models.UniqueConstraint(
                condition=models.Q(("user", None)),
                fields=("group", "environment", "role", "within"),
                name="group_grant_once",
            ),
        ),
    ]
