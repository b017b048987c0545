"""The read side of snapshots: what ADS processes, the API and the pages load."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final

from django.db import models

from controlplane.catalog.sealing import key_ring
from controlplane.catalog.selectors import blobs_read
from controlplane.common.remembered import Remembered
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.services import signed_part
from xdscore.chunks import ChunkError, chunk_number, decode_access, decode_chunk, decode_root
from xdscore.resource_types import ResourceType
from xdscore.rollout_part import CandidatePart, decode_rollout
from xdscore.sides import RolloutTable
from xdscore.snapshot import Entry, EntryKey, Snapshot, snapshot_from_entries, with_candidate

# The names that pages ask for, of some environments; one takes about a kilobyte.
_MAX_ENTRIES: Final = 20_000

_Held = tuple[str, EntryKey]
"""The address of a chunk, and a name that belongs into it."""
_entries_held: Final = Remembered[_Held, Entry | None](_MAX_ENTRIES)
# Roots and access tables of some environments, by their addresses; one takes tens of kilobytes.
_parts_held: Final = Remembered[str, bytes](100)
# Candidate sides of some environments, by their addresses; one holds what its rollout changes.
_candidates_held: Final = Remembered[str, CandidatePart](8)


@dataclass(frozen=True, slots=True)
class SnapshotHead:
    """The newest snapshot of an environment, as hashes of what it holds (`root`, `access`, `rollout`).

    `mac`: its signature; `genuine`: whether that verifies, so that the hashes of the stable side can be trusted.
    `rollout`: the hash of the candidate side; empty while no rollout is open. `rollout_mac` is the signature that
        covers it, too; `rollout_genuine`: whether that verifies. If not, the stable side alone is served (rollouts.md
        R2).
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
    rollout: str = ""
    rollout_mac: str = ""
    rollout_genuine: bool = False

    @property
    def parts(self) -> tuple[str, str, str]:
        """The hashes of all that the snapshot holds."""
        return self.root, self.access, self.rollout

    def is_of(self, parts: tuple[str, str, str]) -> bool:
        """Whether `parts` are the hashes of what the snapshot holds. Of its candidate side nothing may be known: what a
        process of the version before kept on disk is without.
        """
        return (self.root, self.access) == parts[:2] and self.rollout in {"", parts[2]}


_OF_A_HEAD = (
    *("environment__key", "lineage", "epoch", "generation"),
    *("root", "access", "mac", "rollout", "rollout_mac"),
)


def snapshot_heads() -> tuple[SnapshotHead, ...]:
    """The newest snapshot of every environment that has one. One query."""
    newest = SnapshotRow.objects.filter(
        environment__lineage=models.F("lineage"), environment__epoch=models.F("epoch")
    ).select_related("environment")
    # Every ADS process asks again and again, mostly in vain.
    return tuple(_head(row) for row in newest.only(*_OF_A_HEAD))


def snapshot_list(*, environment_key: str) -> models.QuerySet[SnapshotRow]:
    """The snapshots of an environment, newest first, without those from before its database was last put back."""
    return SnapshotRow.objects.filter(
        environment__key=environment_key, lineage=models.F("environment__lineage")
    ).order_by("-epoch")


def published_at(*, environment_key: str) -> datetime | None:
    """When the newest snapshot of an environment was published; None where nothing was. One query."""
    return snapshot_list(environment_key=environment_key).values_list("at", flat=True).first()


def published_times(*, environment_keys: Collection[str]) -> Mapping[str, datetime]:
    """When the newest snapshot of each of these environments was published, by key; an environment without any is left
    out. One query.
    """
    newest = SnapshotRow.objects.filter(
        environment__key__in=list(environment_keys),
        environment__lineage=models.F("lineage"),
        environment__epoch=models.F("epoch"),
    )
    return dict(newest.values_list("environment__key", "at"))


def snapshot_head(
    *,
    environment: str,
    lineage: str,
    epoch: int,
    root: str,
    access: str,
    mac: str,
    rollout: str = "",
    rollout_mac: str = "",
) -> SnapshotHead:
    """A SnapshotHead for a snapshot that was read from elsewhere than the database. Its signatures `mac` and
    `rollout_mac` are verified here, and the result says whether they hold.
    """
    signed = partial(signed_part, environment_key=environment, lineage=lineage, epoch=epoch, root=root, access=access)
    return SnapshotHead(
        environment,
        lineage,
        epoch,
        root,
        access,
        mac,
        genuine=key_ring().verifies(signed(), mac),
        rollout=rollout,
        rollout_mac=rollout_mac,
        rollout_genuine=bool(rollout) and key_ring().verifies(signed(rollout=rollout), rollout_mac),
    )


def _head(row: SnapshotRow) -> SnapshotHead:
    head = snapshot_head(
        environment=row.environment.key,
        lineage=str(row.lineage),
        epoch=row.epoch,
        root=row.root_id,
        access=row.access_id,
        mac=row.mac,
        rollout=row.rollout_id or "",
        rollout_mac=row.rollout_mac,
    )
    return replace(head, generation=row.generation)


def snapshot_of_name(*, environment_key: str, kind: ResourceType, name: str) -> Snapshot | None:
    """The newest snapshot, reduced to the whole access table and the chunk that holds one name; with its candidate
    side, reduced alike, while a rollout is open.

    None when nothing was published yet, or the newest snapshot is not genuine. Raises ChunkError when a part of it is
    missing or damaged.
    """
    head = next((head for head in snapshot_heads() if head.environment == environment_key), None)
    return None if head is None or not head.genuine else snapshot_part(head=head, kind=kind, name=name)


def snapshot_of_names(*, environment_key: str, keys: Collection[EntryKey]) -> Snapshot | None:
    """The newest snapshot, reduced to the whole access table and what it holds of these names; with its candidate side,
    reduced alike, while a rollout is open.

    None when nothing was published yet, or the newest snapshot is not genuine. Raises ChunkError when a part of it is
    missing or damaged.
    """
    return snapshots_of_names(keys={environment_key: keys}).get(environment_key)


def snapshots_of_names(*, keys: Mapping[str, Collection[EntryKey]]) -> Mapping[str, Snapshot]:
    """The newest snapshots of many environments, by environment key, each with the whole access table and what it holds
    of the names given for the environment, and with its candidate side, reduced alike, while a rollout is open. An
    environment without a genuine snapshot is left out. As many queries as
    for one environment. Raises ChunkError when a part is missing or damaged.
    """
    heads = [head for head in snapshot_heads() if head.environment in keys and head.genuine]
    return snapshots_of_heads(keys={head: keys[head.environment] for head in heads})


def snapshots_of_heads(*, keys: Mapping[SnapshotHead, Collection[EntryKey]]) -> Mapping[str, Snapshot]:
    """The snapshots of these heads, by environment key, each with the whole access table and what it holds of the names
    given for the head, and with its candidate side, reduced alike, while a rollout is open. Two queries at most; one
    more for candidate sides. Raises ChunkError when a part of a stable side is missing or damaged.
    """
    blobs = _parts_held.those_of({address for head in keys for address in (head.root, head.access)}, _blobs)
    held = {head: _chunks_of(blobs[head.root], wanted) for head, wanted in keys.items()}
    entries = _entries_held.those_of([each for some in held.values() for each in some], _entries_read)
    candidates = _candidates(keys)
    stable = {
        head: snapshot_from_entries(
            environment=head.environment,
            lineage=head.lineage,
            epoch=head.epoch,
            access=decode_access(blobs[head.access]),
            entries=[(each[1], entry) for each in some if (entry := entries[each]) is not None],
        )
        for head, some in held.items()
    }
    return {
        head.environment: _with_sides(snapshot, candidates.get(head), keys[head]) for head, snapshot in stable.items()
    }


def candidate_diff(*, environment_key: str) -> Mapping[EntryKey, Entry | None]:
    """The entries in which the candidate side of an environment differs from its stable side, in the newest snapshot;
    None for a name of which the candidate side knows nothing. Empty while no rollout is open, and where no process
    serves a candidate side because its part is forged or damaged.
    """
    part = _candidate_now(environment_key)
    return part.diff if part is not None else {}


def rollout_table(*, environment_key: str) -> RolloutTable | None:
    """Who is on the candidate side of an environment by its newest snapshot; None while no rollout is open, and where
    no process serves a candidate side because its part is forged or damaged.
    """
    part = _candidate_now(environment_key)
    return part.table if part is not None else None


def _candidate_now(environment_key: str) -> CandidatePart | None:
    head = next((head for head in snapshot_heads() if head.environment == environment_key), None)
    return _candidates([head]).get(head) if head is not None and head.genuine else None


def _candidates(heads: Iterable[SnapshotHead]) -> Mapping[SnapshotHead, CandidatePart]:
    """The candidate sides of these heads, without those that are forged or damaged: their stable side is served to
    everybody (rollouts.md R2).
    """
    wanted = {head: head.rollout for head in heads if head.rollout_genuine}
    found = _candidates_held.those_of(set(wanted.values()), _candidates_read) if wanted else {}
    return {head: found[address] for head, address in wanted.items() if address in found}


def _candidates_read(addresses: Collection[str]) -> Mapping[str, CandidatePart]:
    found: dict[str, CandidatePart] = {}
    for address, _, data in blobs_read(addresses=addresses):
        with suppress(ChunkError):
            found[address] = decode_rollout(data)
    return found


def _with_sides(stable: Snapshot, part: CandidatePart | None, keys: Collection[EntryKey]) -> Snapshot:
    """The snapshot with its candidate side, which differs in what `part` has of these names; without one where `part`
    is None.
    """
    if part is None:
        return stable
    return with_candidate(stable, part.table, {key: part.diff[key] for key in keys if key in part.diff})


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
    """What the stable side of an environment's newest snapshot holds of each name (rollouts.md R13); empty when there
    is no snapshot. Raises ChunkError when it is damaged.
    """
    head = next((head for head in snapshot_heads() if head.environment == environment_key), None)
    if head is None:
        return {}
    if not head.genuine:
        raise ChunkError(f"the signature of snapshot {head.epoch} does not hold")
    return dict(_entries({address.hex() for address in decode_root(_blob(head.root))}))


def snapshot_part(*, head: SnapshotHead, kind: ResourceType, name: str) -> Snapshot:
    """The snapshot of `head`, reduced to the whole access table and the chunk that holds one name, with its candidate
    side, reduced alike, if the head has one. Raises ChunkError when a part of the stable side is missing or damaged.
    """
    shared = _parts_held.those_of({head.root, head.access}, _blobs)
    addresses = decode_root(shared[head.root])
    key = (kind.word, name)
    chunk = decode_chunk(_blob(addresses[chunk_number(key)].hex()))
    stable = snapshot_from_entries(
        environment=head.environment,
        lineage=head.lineage,
        epoch=head.epoch,
        access=decode_access(shared[head.access]),
        entries=[(found, entry) for found, entry in chunk if found == key],
    )
    return _with_sides(stable, _candidates([head]).get(head), [key])


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
