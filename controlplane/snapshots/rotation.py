"""Moves the signatures of snapshots to the newest key while everything serves on (decisions D19)."""

from dataclasses import dataclass

from django.db.models import Count
from django.db.models.functions import Substr

from controlplane.catalog.sealing import MARK_CHARS, key_ring
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.services import signed_part


@dataclass(frozen=True, slots=True)
class Resigned:
    """How many snapshots were signed anew, and how many no key of the ring vouches for."""

    moved: int
    lost: int


def snapshots_foreign() -> int:
    """The number of snapshots that were signed by a key which is not configured, as they say themselves. One query."""
    ring = key_ring()
    marks = SnapshotRow.objects.annotate(mark=Substr("mac", 1, MARK_CHARS)).order_by()
    counts = marks.values_list("mark").annotate(snapshots=Count("pk"))
    return sum(number for mark, number in counts if not ring.may_verify(mark))


def snapshots_resign() -> Resigned:
    """Sign anew, with the first key, every snapshot that an older key signed, so that the older one can be dropped
    (D19).

    Only what verifies now: a forged row must not become a genuine one.
    """
    ring = key_ring()
    moved = lost = 0
    for row in SnapshotRow.objects.select_related("environment").iterator(chunk_size=500):
        if ring.signed_by_current(row.mac):
            continue
        signed = signed_part(
            environment_key=row.environment.key,
            lineage=str(row.lineage),
            epoch=row.epoch,
            root=row.root_id,
            access=row.access_id,
        )
        if not ring.verifies(signed, row.mac):
            lost += 1
            continue
        moved += SnapshotRow.objects.filter(pk=row.pk, mac=row.mac).update(mac=ring.sign(signed))
    return Resigned(moved, lost)
