from django.db import migrations, models


class Migration(migrations.Migration):
    """Behind what fills the columns: PostgreSQL changes no table with rows of the same transaction waiting."""

    dependencies = [("accounts", "0005_principals")]

    operations = [
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "personal"), ("owner__isnull", False)),
                    models.Q(models.Q(("kind", "personal"), _negated=True), ("owner__isnull", True)),
                    _connector="OR",
                ),
                name="token_personal_has_owner",
            ),
        ),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.UniqueConstraint(
                condition=models.Q(("revoked_at", None), models.Q(("name_space", ""), _negated=True)),
                fields=("name_space", "name"),
                name="token_name_once",
            ),
        ),
    ]
