from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import BinaryField, Max
from django.db.models.functions import Substr

# As `catalog.sealing` writes them today: a format of one byte and eight of the key's id; or that id in hexadecimal.
_SEALED_BYTES, _MAC_CHARS = 9, 16


def note_what_is_there(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    """Every key that a secret or a snapshot names, that of the newest snapshot last."""
    blobs = apps.get_model("catalog", "Blob").objects.filter(kind="secret").order_by()
    mark = Substr("data", 1, _SEALED_BYTES, output_field=BinaryField())
    secrets = {bytes(each)[1:].hex() for each in blobs.annotate(mark=mark).values_list("mark", flat=True).distinct()}
    rows = apps.get_model("snapshots", "SnapshotRow").objects.order_by()
    signed = rows.annotate(mark=Substr("mac", 1, _MAC_CHARS)).values_list("mark").annotate(last=Max("pk"))
    snapshots = [found for found, _ in sorted(signed, key=lambda each: each[1])]
    marks = [*sorted(secrets - set(snapshots)), *snapshots]
    model = apps.get_model("catalog", "KeyMark")
    model.objects.bulk_create([model(mark=each) for each in marks])


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0015_principals"),
        ("snapshots", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeyMark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("mark", models.CharField(max_length=16, unique=True)),
            ],
        ),
        migrations.RunPython(note_what_is_there, migrations.RunPython.noop),
    ]
