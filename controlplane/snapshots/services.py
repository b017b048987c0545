"""Publishes snapshots: one transaction, one winner (reliability P1 to P3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from django.db import transaction

from controlplane.broker.hints import hint_published
from controlplane.catalog.choices import BlobKind
from controlplane.catalog.heads import Moment
from controlplane.catalog.key_marks import keys_permit
from controlplane.catalog.sealing import key_ring
from controlplane.catalog.selectors import change_of_generation
from controlplane.catalog.services import blobs_write, environment_publish_fence, environment_publish_lock
from controlplane.database.failpoints import failpoint
from controlplane.snapshots.models import SnapshotRow
from xdscore.access import AccessTable
from xdscore.chunks import encode_access, encode_root
from xdscore.snapshot import content_hash


class PublishOutcome(Enum):
    """How an attempt to publish ended."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"  # clients would see no difference: no new epoch
    FENCED = "fenced"  # a build of this or a later generation was there first


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome of publishing, and the epoch that serves what was built: the new one, or the one that was served
    already.
    """

    outcome: PublishOutcome
    epoch: int


def signed_part(*, environment_key: str, lineage: str, epoch: int, root: str, access: str) -> bytes:
    """The bytes that a snapshot's MAC covers: with the addresses, every byte below them (reliability P10)."""
    return "\0".join((environment_key, lineage, str(epoch), root, access)).encode()


def snapshot_publish(
    *,
    environment_id: int,
    environment_key: str,
    built_from: Moment,
    parts: Sequence[bytes],
    access: AccessTable,
    counts: Mapping[str, int],
    record: Callable[[Published], None],
) -> Published:
    """Publish these chunks as the environment's snapshot, unless a later generation already is, or the database has
    lost what they were built from (compare-and-set, decisions D6 and D5b).

    `record` is called within the same transaction to store what the build found; it is not called when the build is
    fenced. Raises KeysForeign when nobody else could verify what this process signs.
    """
    chunks = {content_hash(part).hex(): part for part in parts}
    root = encode_root(content_hash(part) for part in parts)
    table = encode_access(access)
    root_address, access_address = content_hash(root).hex(), content_hash(table).hex()
    with transaction.atomic(durable=True):
        environment = environment_publish_lock(environment_id=environment_id)
        if environment is None:
            return Published(PublishOutcome.FENCED, 0)
        change = change_of_generation(environment_id=environment_id, generation=built_from.generation)
        if (environment.lineage, change) != (built_from.lineage, built_from.change):
            return Published(PublishOutcome.FENCED, environment.epoch)
        failpoint("publish.locked")
        last = (
            SnapshotRow.objects.filter(environment_id=environment_id, lineage=environment.lineage)
            .order_by("-epoch")
            .first()
        )
        same = last is not None and (last.root_id, last.access_id) == (root_address, access_address)
        if not environment_publish_fence(
            environment_id=environment_id, generation=built_from.generation, new_epoch=not same
        ):
            return Published(PublishOutcome.FENCED, environment.epoch)
        failpoint("publish.claimed")
        published = Published(PublishOutcome.UNCHANGED, environment.epoch)
        if not same:
            published = Published(PublishOutcome.PUBLISHED, environment.epoch + 1)
            blobs_write(kind=BlobKind.CHUNK, blobs=chunks)
            blobs_write(kind=BlobKind.ROOT, blobs={root_address: root})
            blobs_write(kind=BlobKind.ACCESS, blobs={access_address: table})
            failpoint("publish.blobs_written")
            keys_permit()
            signed = signed_part(
                environment_key=environment_key,
                lineage=environment.lineage,
                epoch=published.epoch,
                root=root_address,
                access=access_address,
            )
            SnapshotRow.objects.create(
                environment_id=environment_id,
                lineage=environment.lineage,
                epoch=published.epoch,
                generation=built_from.generation,
                root_id=root_address,
                access_id=access_address,
                counts=dict(counts),
                mac=key_ring().sign(signed),
            )
            failpoint("publish.snapshot_written")
            transaction.on_commit(lambda: failpoint("publish.committed"))
            transaction.on_commit(lambda: hint_published(environment_key))
        record(published)
        failpoint("publish.recorded")
    return published
