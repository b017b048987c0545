"""Names that differ only in the order of their context parameters are one (protocol.md H1): stored ones become canonical,
which those are that clients' requests are read into. A name that is there in both spellings keeps the canonical one.
"""

from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from xdscore.names import XDSTP, canonical


def canonical_names(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    """Rename resources, and what revisions refer to, where nothing of the canonical name is there."""
    resources: Any = apps.get_model("catalog", "Resource")
    references: Any = apps.get_model("catalog", "Reference")
    for row in resources.objects.filter(name__startswith=XDSTP).iterator():
        name = canonical(row.name)
        same = resources.objects.filter(environment_id=row.environment_id, type=row.type, name=name)
        if name != row.name and not same.exists():
            resources.objects.filter(pk=row.pk).update(name=name)
    for row in references.objects.filter(to_name__startswith=XDSTP).iterator():
        name = canonical(row.to_name)
        same = references.objects.filter(revision_id=row.revision_id, to_type=row.to_type, to_name=name)
        if name != row.to_name and not same.exists():
            references.objects.filter(pk=row.pk).update(to_name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0016_key_marks"),
    ]

    operations = [migrations.RunPython(canonical_names, migrations.RunPython.noop)]
