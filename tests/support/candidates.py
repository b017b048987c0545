"""Publishes the newest snapshot of the default environment once more, with a candidate side or without."""

from controlplane.catalog.heads import Moment
from controlplane.catalog.models import Blob, Change, Environment
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.services import Published, snapshot_publish
from xdscore.chunks import decode_access, decode_root
from xdscore.rollout_part import CandidatePart
from xdscore.sides import WHOLE_PERMILLE, RolloutTable

EVERYBODY = RolloutTable("rollout-1", 0, frozenset(), (), WHOLE_PERMILLE, "seed")
NOBODY = RolloutTable("rollout-1", 0, frozenset(), (), 0, "seed")


def publish_with(candidate: CandidatePart | None) -> Published:
    """Publish the stable side of the newest snapshot, with this candidate side beside it."""
    environment = Environment.objects.get(key="default")
    Environment.objects.update(built_generation=environment.generation - 1)
    row = SnapshotRow.objects.select_related("root", "access").latest("epoch")
    change = Change.objects.get(environment=environment, generation=environment.generation)
    return snapshot_publish(
        environment_id=environment.pk,
        environment_key="default",
        built_from=Moment(str(environment.lineage), environment.generation, change.public_id),
        parts=[bytes(Blob.objects.get(pk=each.hex()).data) for each in decode_root(bytes(row.root.data))],
        access=decode_access(bytes(row.access.data)),
        counts=row.counts,
        record=lambda _: None,
        candidate=candidate,
    )
