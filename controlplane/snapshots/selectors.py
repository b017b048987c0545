"""The read side of snapshots: what ADS processes, the API and the pages load."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from django.db import models

from controlplane.catalog.sealing import key_ring
from controlplane.catalog.selectors import blobs_read
from controlplane.common.remembered import Remembered
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.services import signed_part
from xdscore.chunks import ChunkError, chunk_number, decode_access, decode_chunk, decode_root
from xdscore.resource_types import ResourceType
from xdscore.snapshot import Entry, EntryKey, Snapshot, snapshot_from_entries

# The names that pages ask for, of some environments; one takes about a kilobyte.
_MAX_ENTRIES: Final = 20_000

_Held = tuple[str, EntryKey]
"""The address of a chunk, and a name that belongs into it."""
_entries_held: Final = Remembered[_Held, Entry | None](_MAX_ENTRIES)
# Roots and access tables of some environments, by their addresses; one takes tens of kilobytes.
_parts_held: Final = Remembered[str, bytes](100)


@dataclass(frozen=True, slots=True)
class SnapshotHead:
    """The newest snapshot of an environment, by its addresses. `genuine`: its signature holds, so the addresses can be
    believed. `generation`: up to which it was built, None where only the disk knows it; for people, not signed.
    """

    environment: str
    lineage: str
    epoch: int
    root: str
    access: str
    mac: str
    genuine: bool
    generation: int | None = field(default=None, compare=False)


def snapshot_heads() -> tuple[SnapshotHead, ...]:
    """The newest snapshot of every environment that has one. One query."""
    newest = SnapshotRow.objects.filter(
        environment__lineage=models.F("lineage"), environment__epoch=models.F("epoch")
    ).select_related("environment")
    return tuple(_head(row) for row in newest)


def snapshot_list(*, environment_key: str) -> models.QuerySet[SnapshotRow]:
    """The snapshots of an environment's lineage, newest first."""
    return SnapshotRow.objects.filter(
        environment__key=environment_key, lineage=models.F("environment__lineage")
    ).order_by("-epoch")


def snapshot_head(*, environment: str, lineage: str, epoch: int, root: str, access: str, mac: str) -> SnapshotHead:
    """The head of a snapshot that was stored elsewhere than in the database, with its signature checked anew."""
    signed = signed_part(environment_key=environment, lineage=lineage, epoch=epoch, root=root, access=access)
    return SnapshotHead(environment, lineage, epoch, root, access, mac, genuine=key_ring().verifies(signed, mac))


def _head(row: SnapshotRow) -> SnapshotHead:
    head = snapshot_head(
        environment=row.environment.key,
        lineage=str(row.lineage),
        epoch=row.epoch,
        root=row.root_id,
        access=row.access_id,
        mac=row.mac,
    )
    return replace(head, generation=row.generation)


def snapshot_of_name(*, environment_key: str, kind: ResourceType, name: str) -> Snapshot | None:
    """The newest snapshot with only what one name needs: the whole access table, and the chunk that holds the name.

    None when nothing was published yet, or what was is not genuine.
    """
    head = next((head for head in snapshot_heads() if head.environment == environment_key), None)
    return None if head is None or not head.genuine else snapshot_part(head=head, kind=kind, name=name)


def snapshot_of_names(*, environment_key: str, keys: Collection[EntryKey]) -> Snapshot | None:
    """The newest snapshot with only what these names need: the whole access table, and the chunks that hold them.

    None when nothing was published yet, or what was is not genuine. Raises ChunkError when a blob is missing or
    damaged.
    """
    return snapshots_of_names(keys={environment_key: keys}).get(environment_key)


def snapshots_of_names(*, keys: Mapping[str, Collection[EntryKey]]) -> Mapping[str, Snapshot]:
    """The newest snapshots of many environments, by key, each with only what these names need, as `snapshot_of_names`;
    environments without one are left out. As few queries as for one. Raises ChunkError.
    """
    heads = [head for head in snapshot_heads() if head.environment in keys and head.genuine]
    return snapshots_of_heads(keys={head: keys[head.environment] for head in heads})


def snapshots_of_heads(*, keys: Mapping[SnapshotHead, Collection[EntryKey]]) -> Mapping[str, Snapshot]:
    """The snapshots of these heads, by environment, each with only what these names need, as `snapshot_of_names`. Two
    queries at most. Raises ChunkError.
    """
    blobs = _parts_held.those_of({address for head in keys for address in (head.root, head.access)}, _blobs)
    held = {head: _chunks_of(blobs[head.root], wanted) for head, wanted in keys.items()}
    entries = _entries_held.those_of([each for some in held.values() for each in some], _entries_read)
    return {
        head.environment: snapshot_from_entries(
            environment=head.environment,
            lineage=head.lineage,
            epoch=head.epoch,
            access=decode_access(blobs[head.access]),
            entries=[(each[1], entry) for each in some if (entry := entries[each]) is not None],
        )
        for head, some in held.items()
    }


def _chunks_of(root: bytes, keys: Collection[EntryKey]) -> list[_Held]:
    """Each of these names with the address of the chunk that holds it."""
    addresses = [address.hex() for address in decode_root(root)]
    return [(addresses[chunk_number(key)], key) for key in dict.fromkeys(keys)]


def _entries_read(held: Collection[_Held]) -> Mapping[_Held, Entry | None]:
    """The entry of each of these names in its chunk; None where the chunk has none. One query. Raises ChunkError."""
    wanted: dict[str, set[EntryKey]] = defaultdict(set)
    for address, key in held:
        wanted[address].add(key)
    found: dict[_Held, Entry | None] = dict.fromkeys(held)
    for address, data in _blobs(wanted.keys()).items():
        found |= {(address, key): entry for key, entry in decode_chunk(data) if key in wanted[address]}
    return found


def entries_published(*, environment_key: str) -> Mapping[EntryKey, Entry]:
    """Every entry of the newest snapshot; nothing when there is none. Raises ChunkError when it is damaged."""
    head = next((head for head in snapshot_heads() if head.environment == environment_key), None)
    if head is None:
        return {}
    if not head.genuine:
        raise ChunkError(f"the signature of snapshot {head.epoch} does not hold")
    return dict(_entries({address.hex() for address in decode_root(_blob(head.root))}))


def snapshot_part(*, head: SnapshotHead, kind: ResourceType, name: str) -> Snapshot:
    """The snapshot of this head with only what one name needs. Raises ChunkError when a blob is missing or damaged."""
    addresses = decode_root(_blob(head.root))
    key = (kind.word, name)
    chunk = decode_chunk(_blob(addresses[chunk_number(key)].hex()))
    return snapshot_from_entries(
        environment=head.environment,
        lineage=head.lineage,
        epoch=head.epoch,
        access=decode_access(_blob(head.access)),
        entries=[(found, entry) for found, entry in chunk if found == key],
    )


def _entries(chunks: Collection[str]) -> Iterator[tuple[EntryKey, Entry]]:
    """The entries of these different chunks. Raises ChunkError."""
    for data in _blobs(chunks).values():
        yield from decode_chunk(data)


def _blobs(addresses: Collection[str]) -> dict[str, bytes]:
    """The bytes of these different blobs, by address. Raises ChunkError when one is missing."""
    found = {address: data for address, _, data in blobs_read(addresses=addresses)} if addresses else {}
    if len(found) < len(addresses):
        raise ChunkError(f"{len(addresses) - len(found)} blobs are missing")
    return found


def _blob(address: str) -> bytes:
    for _, _, data in blobs_read(addresses=[address]):
        return data
    raise ChunkError(f"blob {address} is missing")
