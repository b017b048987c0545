"""Moves the signatures of snapshots to the newest key while everything serves on (decisions D19)."""

from dataclasses import dataclass
from functools import partial

from django.db.models import Count
from django.db.models.functions import Substr

from controlplane.catalog.sealing import MARK_CHARS, key_ring
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.services import signed_part


@dataclass(frozen=True, slots=True)
class Resigned:
    """The result of signing snapshots anew. `moved`: how many were signed with the newest key; `lost`: how many could
    not be, because no configured key verifies their signature.
    """

    moved: int
    lost: int


def snapshots_foreign() -> int:
    """The number of snapshots that name, as the key that signed them, one that is not configured here. One query."""
    ring = key_ring()
    marks = SnapshotRow.objects.annotate(
        mark=Substr("mac", 1, MARK_CHARS), rollout_mark=Substr("rollout_mac", 1, MARK_CHARS)
    ).order_by()
    counts = marks.values_list("mark", "rollout_mark").annotate(snapshots=Count("pk"))
    return sum(number for *found, number in counts if not all(map(ring.may_verify, filter(None, found))))


def snapshots_resign() -> Resigned:
    """Sign every snapshot with the first configured key, so that older keys can be removed (D19). A signature that does
    not verify is left as it is: a forged row must not become a genuine one.
    """
    ring = key_ring()
    moved = lost = 0
    for row in SnapshotRow.objects.select_related("environment").iterator(chunk_size=500):
        signed = _signed(row)
        old = {column: mac for column in signed if not ring.signed_by_current(mac := getattr(row, column))}
        new = {column: ring.sign(signed[column]) for column, mac in old.items() if ring.verifies(signed[column], mac)}
        lost += len(new) < len(old)
        if new:
            moved += SnapshotRow.objects.filter(pk=row.pk, **old).update(**new)
    return Resigned(moved, lost)


def _signed(row: SnapshotRow) -> dict[str, bytes]:
    """What each of the row's signatures is made over, by column; that of the candidate side only where it has one."""
    part = partial(
        signed_part,
        environment_key=row.environment.key,
        lineage=str(row.lineage),
        epoch=row.epoch,
        root=row.root_id,
        access=row.access_id,
    )
    return {"mac": part()} if row.rollout_id is None else {"mac": part(), "rollout_mac": part(rollout=row.rollout_id)}
