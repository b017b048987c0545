"""The read side of snapshots: what ADS processes, the API and the pages load."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
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
    """The newest snapshot of an environment, as hashes of what it holds (`root`, `access`).

    `mac`: its signature; `genuine`: whether that verifies, so that the hashes can be trusted.
    `generation`: the generation of the catalogue it was built from, for people only, because it is not signed; None
        where the snapshot was read from an ADS process's disk.
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
    """The snapshots of an environment, newest first, without those from before its database was last put back."""
    return SnapshotRow.objects.filter(
        environment__key=environment_key, lineage=models.F("environment__lineage")
    ).order_by("-epoch")


def published_at(*, environment_key: str) -> datetime | None:
    """When the newest snapshot of an environment was published; None where nothing was. One query."""
    return snapshot_list(environment_key=environment_key).values_list("at", flat=True).first()


def snapshot_head(*, environment: str, lineage: str, epoch: int, root: str, access: str, mac: str) -> SnapshotHead:
    """A SnapshotHead for a snapshot that was read from elsewhere than the database. Its signature `mac` is verified
    here, and the result says whether it is genuine.
    """
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
    """The newest snapshot, reduced to the whole access table and the chunk that holds one name.

    None when nothing was published yet, or the newest snapshot is not genuine. Raises ChunkError when a part of it is
    missing or damaged.
    """
    head = next((head for head in snapshot_heads() if head.environment == environment_key), None)
    return None if head is None or not head.genuine else snapshot_part(head=head, kind=kind, name=name)


def snapshot_of_names(*, environment_key: str, keys: Collection[EntryKey]) -> Snapshot | None:
    """The newest snapshot, reduced to the whole access table and what it holds of these names.

    None when nothing was published yet, or the newest snapshot is not genuine. Raises ChunkError when a part of it is
    missing or damaged.
    """
    return snapshots_of_names(keys={environment_key: keys}).get(environment_key)


def snapshots_of_names(*, keys: Mapping[str, Collection[EntryKey]]) -> Mapping[str, Snapshot]:
    """The newest snapshots of many environments, by environment key, each with the whole access table and what it holds
    of the names given for the environment. An environment without a genuine snapshot is left out. As many queries as
    for one environment. Raises ChunkError when a part is missing or damaged.
    """
    heads = [head for head in snapshot_heads() if head.environment in keys and head.genuine]
    return snapshots_of_heads(keys={head: keys[head.environment] for head in heads})


def snapshots_of_heads(*, keys: Mapping[SnapshotHead, Collection[EntryKey]]) -> Mapping[str, Snapshot]:
    """The snapshots of these heads, by environment key, each with the whole access table and what it holds of the names
    given for the head. Two queries at most. Raises ChunkError when a part is missing or damaged.
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
    """Each of the names `keys` together with the hash of the chunk that holds it. `root`: the bytes that list the
    chunks.
    """
    addresses = [address.hex() for address in decode_root(root)]
    return [(addresses[chunk_number(key)], key) for key in dict.fromkeys(keys)]


def _entries_read(held: Collection[_Held]) -> Mapping[_Held, Entry | None]:
    """What is published of each name in `held`, which is (hash of the chunk, name); None for a name that its chunk
    lacks. One query. Raises ChunkError when a chunk is missing or damaged.
    """
    wanted: dict[str, set[EntryKey]] = defaultdict(set)
    for address, key in held:
        wanted[address].add(key)
    found: dict[_Held, Entry | None] = dict.fromkeys(held)
    for address, data in _blobs(wanted.keys()).items():
        found |= {(address, key): entry for key, entry in decode_chunk(data) if key in wanted[address]}
    return found


def entries_published(*, environment_key: str) -> Mapping[EntryKey, Entry]:
    """What the newest snapshot of an environment holds of each name; empty when there is no snapshot. Raises ChunkError
    when it is damaged.
    """
    head = next((head for head in snapshot_heads() if head.environment == environment_key), None)
    if head is None:
        return {}
    if not head.genuine:
        raise ChunkError(f"the signature of snapshot {head.epoch} does not hold")
    return dict(_entries({address.hex() for address in decode_root(_blob(head.root))}))


def snapshot_part(*, head: SnapshotHead, kind: ResourceType, name: str) -> Snapshot:
    """The snapshot of `head`, reduced to the whole access table and the chunk that holds one name. Raises ChunkError
    when a part of it is missing or damaged.
    """
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
    """What the chunks with these hashes hold of each name. Raises ChunkError when one is missing or damaged."""
    for data in _blobs(chunks).values():
        yield from decode_chunk(data)


def _blobs(addresses: Collection[str]) -> dict[str, bytes]:
    """The stored bytes with these hashes, by hash. Raises ChunkError when one is missing."""
    found = {address: data for address, _, data in blobs_read(addresses=addresses)} if addresses else {}
    if len(found) < len(addresses):
        raise ChunkError(f"{len(addresses) - len(found)} blobs are missing")
    return found


def _blob(address: str) -> bytes:
    for _, _, data in blobs_read(addresses=[address]):
        return data
    raise ChunkError(f"blob {address} is missing")
