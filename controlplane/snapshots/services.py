"""Publishes snapshots: one transaction, one winner (reliability P1 to P3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

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
from xdscore.rollout_part import CandidatePart, encode_rollout
from xdscore.snapshot import content_hash


class PublishOutcome(Enum):
    """How an attempt to publish a snapshot ended."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"  # clients would see no difference: no new epoch
    FENCED = "fenced"  # a build of this or a later generation was there first


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome of an attempt to publish, and the epoch that now serves what was built: a new one, or, where nothing
    had changed, the one served before.
    """

    outcome: PublishOutcome
    epoch: int


def signed_part(*, environment_key: str, lineage: str, epoch: int, root: str, access: str, rollout: str = "") -> bytes:
    """The bytes over which a snapshot's signature (MAC) is made. They contain the hashes of all that the snapshot
    holds, so the signature covers that, too (reliability P10).

    `rollout`: the hash of the candidate side, for the signature that covers it, too; a process of the version before
    verifies the one that leaves it out (rollouts.md R2).
    """
    held = (root, access, rollout) if rollout else (root, access)
    return "\0".join((environment_key, lineage, str(epoch), *held)).encode()


def snapshot_publish(
    *,
    environment_id: int,
    environment_key: str,
    built_from: Moment,
    parts: Sequence[bytes],
    access: AccessTable,
    counts: Mapping[str, int],
    record: Callable[[Published], None],
    candidate: CandidatePart | None = None,
) -> Published:
    """Publish the chunks `parts` and the rules `access` as the environment's newest snapshot. Nothing is published, and
    the outcome is "fenced", when a snapshot of a later generation is published already, or the database was put back
    behind `built_from` (decisions D6 and D5b).

    `candidate`: the candidate side while a rollout is open. Another table alone is a difference, too, because other
    clients are on that side (rollouts.md R2).

    `record` is called within the same transaction to store what the build found, but not when the build is fenced.
    Raises KeysForeign when this process has not the keys by which others verify signatures.
    """
    chunks = {content_hash(part).hex(): part for part in parts}
    root = encode_root(content_hash(part) for part in parts)
    table = encode_access(access)
    root_address, access_address = content_hash(root).hex(), content_hash(table).hex()
    rollouts = {} if candidate is None else _stored(candidate)
    rollout_address = next(iter(rollouts), None)
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
        addresses = root_address, access_address, rollout_address
        same = last is not None and (last.root_id, last.access_id, last.rollout_id) == addresses
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
            if rollouts:
                blobs_write(kind=BlobKind.ROLLOUT, blobs=rollouts)
            failpoint("publish.blobs_written")
            keys_permit()
            signed = partial(
                signed_part,
                environment_key=environment_key,
                lineage=environment.lineage,
                epoch=published.epoch,
                root=root_address,
                access=access_address,
            )
            ring = key_ring()
            SnapshotRow.objects.create(
                environment_id=environment_id,
                lineage=environment.lineage,
                epoch=published.epoch,
                generation=built_from.generation,
                root_id=root_address,
                access_id=access_address,
                counts=dict(counts),
                mac=ring.sign(signed()),
                rollout_id=rollout_address,
                rollout_mac=ring.sign(signed(rollout=rollout_address)) if rollout_address else "",
            )
            failpoint("publish.snapshot_written")
            transaction.on_commit(lambda: failpoint("publish.committed"))
            transaction.on_commit(lambda: hint_published(environment_key))
        record(published)
        failpoint("publish.recorded")
    return published


def _stored(candidate: CandidatePart) -> dict[str, bytes]:
    """The bytes in which a candidate side is stored, under their address."""
    data = encode_rollout(candidate)
    return {content_hash(data).hex(): data}
