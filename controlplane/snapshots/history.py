"""What an environment served at an earlier epoch: for exports, comparisons and the way back."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from controlplane.catalog.selectors import blobs_read
from controlplane.common.errors import Gone, NotFound
from controlplane.snapshots.selectors import (
    SnapshotHead,
    snapshot_head,
    snapshot_list,
    snapshot_part,
    snapshots_of_heads,
)
from xdscore.chunks import ChunkError, decode_addresses, decode_chunk, decode_root
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Content, EntryKey, Served, Snapshot, WithheldName


@dataclass(frozen=True, slots=True)
class PastSnapshot:
    """The snapshot of an earlier epoch. `served`: the content of each name that was served; `withheld`: the names of
    which nothing was served.
    """

    epoch: int
    lineage: str
    served: Mapping[EntryKey, Content]
    withheld: frozenset[EntryKey]

    @property
    def addresses(self) -> dict[EntryKey, str]:
        """The content hashes of what was served, by (type, name)."""
        return {key: content.blob.hex() for key, content in self.served.items()}


def snapshot_at(*, environment_key: str, epoch: int) -> PastSnapshot:
    """The snapshot of an epoch. Raises NotFound for an epoch that there has not been yet, and Gone for one whose
    snapshot is not stored any more or is damaged.
    """
    head = _head(environment_key, epoch)
    try:
        entries = [entry for data in _chunks(head.root) for entry in decode_chunk(data)]
    except ChunkError as error:
        raise _unreadable(head, error) from error
    return PastSnapshot(
        epoch,
        head.lineage,
        {key: entry.content for key, entry in entries if isinstance(entry, Served)},
        frozenset(key for key, entry in entries if isinstance(entry, WithheldName)),
    )


def generation_at(*, environment_key: str, epoch: int) -> int:
    """The generation of the catalogue that the snapshot of an epoch was built from. Raises NotFound and Gone as
    `snapshot_at` does.
    """
    found = snapshot_list(environment_key=environment_key).filter(epoch=epoch).values_list("generation", flat=True)
    generation = found.first()
    if generation is None:
        raise _absent(environment_key, epoch)
    return generation


def addresses_at(*, environment_key: str, epoch: int) -> Mapping[EntryKey, str]:
    """The content hashes of what was served at an epoch, by (type, name). Raises NotFound and Gone as `snapshot_at`
    does.
    """
    head = _head(environment_key, epoch)
    try:
        return _addresses(_blobs(_chunk_addresses(head.root)))
    except ChunkError as error:
        raise _unreadable(head, error) from error


def addresses_between(
    *, environment_key: str, before: int, after: int
) -> tuple[Mapping[EntryKey, str], Mapping[EntryKey, str]]:
    """The content hashes of what was served at the epochs `before` and `after`, by (type, name), but only from the
    chunks in which the two snapshots differ, so that the cost depends on the difference (decisions D9). Raises as
    `snapshot_at`.
    """
    first, last = _head(environment_key, before), _head(environment_key, after)
    try:
        pairs = zip(_chunk_addresses(first.root), _chunk_addresses(last.root), strict=True)
        apart = [(old, new) for old, new in pairs if old != new]
        found = _blobs([address for pair in apart for address in pair])
        old, new = ({pair[side]: found[pair[side]] for pair in apart} for side in (0, 1))
        return _addresses(old), _addresses(new)
    except ChunkError as error:
        raise _unreadable(first, error) from error


def snapshot_of_name_at(*, environment_key: str, epoch: int, kind: ResourceType, name: str) -> Snapshot:
    """The snapshot of an epoch, reduced to the chunk that holds one name, with the access rules of that epoch. Raises
    NotFound and Gone as `snapshot_at` does.
    """
    head = _head(environment_key, epoch)
    try:
        return snapshot_part(head=head, kind=kind, name=name)
    except ChunkError as error:
        raise _unreadable(head, error) from error


def snapshot_of_names_at(*, environment_key: str, epoch: int, keys: Collection[EntryKey]) -> Snapshot:
    """The snapshot of an epoch, reduced to what it holds of these names, with the access rules of that epoch. Raises
    NotFound and Gone as `snapshot_at` does.
    """
    head = _head(environment_key, epoch)
    try:
        return snapshots_of_heads(keys={head: keys})[environment_key]
    except ChunkError as error:
        raise _unreadable(head, error) from error


def epoch_at(*, environment_key: str, moment: datetime) -> int:
    """The epoch of the snapshot that was the newest at a time. Raises NotFound for a time before anything was
    published, and Gone where it is not stored any more which one it was.
    """
    rows = snapshot_list(environment_key=environment_key)
    found = rows.filter(at__lte=moment).values_list("epoch", flat=True).first()
    first = rows.values_list("epoch", "at").last()
    when = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    if first is None or (found is None and first[0] == 1):
        raise NotFound(f"Nothing was published in '{environment_key}' yet at {when}.")
    following = None if found is None else rows.filter(epoch__gt=found).values_list("epoch", flat=True).last()
    # Between two snapshots that do not follow each other, others were forgotten.
    if found is None or following not in {None, found + 1}:
        raise Gone(f"The snapshot of '{environment_key}' at {when} is not kept any more.")
    return found


def epoch_before(*, environment_key: str, epoch: int) -> int | None:
    """The newest epoch before this one whose snapshot is stored; None where there is none. It need not be the epoch
    just before: older snapshots are thinned out (`snapshots.retention`).
    """
    rows = snapshot_list(environment_key=environment_key).filter(epoch__lt=epoch)
    return rows.values_list("epoch", flat=True).first()


def epoch_after(*, environment_key: str, epoch: int) -> int | None:
    """The oldest epoch behind this one whose snapshot is stored; None where there is none."""
    rows = snapshot_list(environment_key=environment_key).filter(epoch__gt=epoch)
    return rows.order_by("epoch").values_list("epoch", flat=True).first()


def _head(environment_key: str, epoch: int) -> SnapshotHead:
    row = snapshot_list(environment_key=environment_key).filter(epoch=epoch).first()
    if row is None:
        raise _absent(environment_key, epoch)
    head = snapshot_head(
        environment=environment_key,
        lineage=str(row.lineage),
        epoch=row.epoch,
        root=row.root_id,
        access=row.access_id,
        mac=row.mac,
    )
    if not head.genuine:
        raise Gone(f"Snapshot {epoch} of '{environment_key}' was altered where it is stored; it cannot be trusted.")
    return head


def _unreadable(head: SnapshotHead, error: ChunkError) -> Gone:
    return Gone(f"Snapshot {head.epoch} of '{head.environment}' cannot be read any more: {error}.")


def _absent(environment_key: str, epoch: int) -> NotFound | Gone:
    known = snapshot_list(environment_key=environment_key).values_list("epoch", flat=True)
    newest, oldest = known.first(), known.last()
    if newest is None or oldest is None or epoch > newest:
        return NotFound(f"There is no snapshot {epoch} of '{environment_key}' yet.")
    return Gone(f"Snapshot {epoch} of '{environment_key}' is not kept any more; the oldest that is kept is {oldest}.")


def _chunks(root: str) -> list[bytes]:
    addresses = _chunk_addresses(root)
    found = _blobs(addresses)
    return [found[address] for address in dict.fromkeys(addresses)]


def _chunk_addresses(root: str) -> list[str]:
    return [address.hex() for address in decode_root(_blobs([root])[root])]


def _addresses(chunks: Mapping[str, bytes]) -> dict[EntryKey, str]:
    found: dict[EntryKey, str] = {}
    for data in chunks.values():
        found |= decode_addresses(data)
    return found


def _blobs(addresses: list[str]) -> dict[str, bytes]:
    found = {address: data for address, _, data in blobs_read(addresses=addresses)}
    missing = set(addresses) - found.keys()
    if missing:
        raise ChunkError(f"{len(missing)} of its blobs are missing")
    return found
