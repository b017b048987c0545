"""An environment's default no longer covers secrets (reliability threat 5). Where clients got theirs by it, a rule that
names the type takes its place, so that each client gets what it got before.
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

_TYPE = "secret"
_AUTHOR = "parley"  # accounts.principal.SYSTEM
_POSITION_STEP = 10


def write_rules(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Written as `access.services.rule_create` writes: under the environment's lock, as a change, audited."""
    using = schema_editor.connection.alias
    resources = apps.get_model("catalog", "Resource").objects.using(using)
    secrets = resources.filter(environment=models.OuterRef("pk"), type=_TYPE, deleted=False)
    environments = apps.get_model("catalog", "Environment").objects.using(using).filter(default_effect="allow")
    for environment in environments.filter(models.Exists(secrets)).select_for_update(of=("self",)).order_by("pk"):
        rules = apps.get_model("access", "AccessRule").objects.using(using).filter(environment=environment)
        if not any(_closes(rule) for rule in rules.filter(enabled=True, client_groups=None)):
            _write_rule(apps, using, environment, rules.aggregate(last=models.Max("position"))["last"])


def _closes(rule: models.Model) -> bool:
    """Whether no secret gets past this rule, which speaks of every client, to the default."""
    values = vars(rule)
    covers = _TYPE in values["types"] if values["types"] else values["effect"] != "allow"
    return covers and not values["pattern"].strip("*")


def _write_rule(apps: StateApps, using: str, environment: models.Model, last: int | None) -> None:
    row: dict[str, object] = {
        "position": _POSITION_STEP if last is None else last + _POSITION_STEP,
        "types": [_TYPE],
        "pattern": "*",
        "effect": "allow",
        "message": "",
        "enabled": True,
    }
    rule = apps.get_model("access", "AccessRule").objects.using(using).create(environment=environment, **row)
    after = {**row, "client_groups": []}
    environments = apps.get_model("catalog", "Environment").objects.using(using).filter(pk=environment.pk)
    environments.update(generation=models.F("generation") + 1)
    key, generation = environments.values_list("key", "generation").get()
    change = (
        apps.get_model("catalog", "Change")
        .objects.using(using)
        .create(
            environment=environment,
            generation=generation,
            kind="access",
            author=_AUTHOR,
            message=f"access rule {rule.pk} created by the upgrade: allow * of type {_TYPE}, which the default no "
            "longer covers",
        )
    )
    apps.get_model("access", "AccessEdit").objects.using(using).create(
        change=change, subject="rule", subject_id=rule.pk, action="created", before=None, after=after
    )
    apps.get_model("journal", "AuditEvent").objects.using(using).create(
        actor=_AUTHOR,
        verb="access_rule.created",
        subject=f"rule/{rule.pk}",
        environment=key,
        detail={"before": None, "after": after},
    )


class Migration(migrations.Migration):
    """Takes effect with the next build. Going back leaves the rules: to a version before they say what its default does."""

    dependencies = [
        ("access", "0001_initial"),
        ("catalog", "0012_loss_guard"),
        ("journal", "0003_domainevent"),
    ]

    operations = [
        migrations.RunPython(write_rules, migrations.RunPython.noop),
    ]
