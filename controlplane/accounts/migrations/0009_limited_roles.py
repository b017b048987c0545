from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0008_identity_provider")]

    operations = [
        migrations.RemoveConstraint(model_name="rolegrant", name="user_grant_once"),
        migrations.AddField(
            model_name="rolegrant",
            name="within",
            field=models.CharField(blank=True, db_default="", default="", max_length=1000),
        ),
        migrations.AddConstraint(
            model_name="rolegrant",
            constraint=models.CheckConstraint(
                condition=models.Q(("within", ""), ("role__in", ["editor", "viewer"]), _connector="OR"),
                name="grant_role_limited",
            ),
        ),
        migrations.AddConstraint(
            model_name="rolegrant",
            constraint=models.UniqueConstraint(
                condition=models.Q(("group", None)),
                fields=("user", "environment", "role", "within", "provider_group"),
                name="user_grant_once",
            ),
        ),
    ]
