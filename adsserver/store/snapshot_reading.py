"""Reads a published snapshot from its stored parts and remembers those, so that the next one loads only what is new.

A snapshot is read whole or not at all (reliability P1). One secret that cannot be opened costs nothing but itself
(law 1): its last content that could stays, and without one its name is unreadable until it can be opened.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import structlog

from adsserver.engine.versions import remember_marks
from adsserver.store.blobs import Blobs, SnapshotUnreadable, read_contents, read_parts
from adsserver.store.candidate_reading import NO_CANDIDATE, Candidate, contents_in, known_entries, with_sides
from adsserver.store.contents import ContentMemory
from adsserver.store.disk_format import CacheRefused, Part
from controlplane.snapshots.selectors import SnapshotHead
from xdscore.access import AccessTable
from xdscore.chunks import Chunk, ChunkError, changed_entries, decode_access, decode_chunk, decode_root
from xdscore.resource_types import by_word
from xdscore.rollout_part import CandidatePart, decode_rollout
from xdscore.snapshot import (
    Entry,
    EntryKey,
    Served,
    Snapshot,
    UnreadableName,
    WithheldName,
    snapshot_after,
    snapshot_from_entries,
)

log = structlog.get_logger(__name__)

_FORGED = "its signature does not hold: it was altered, or signed under a key that is not configured"
_SWEEP_S = 60.0  # twice the time a slow stream may take for one write


@dataclass(frozen=True, slots=True)
class Loaded:
    """The newest snapshot of an environment that could be loaded. `head` says where it was published, `chunks` are the
    addresses of its chunks, `unreadable` those of contents that could not be decrypted.

    `candidate`: what the candidate side of the snapshot was made of; None while no rollout is open. `refused`: why the
    stable side is served to everybody although a rollout is open; empty where it is not.
    """

    snapshot: Snapshot
    head: SnapshotHead
    chunks: tuple[bytes, ...]
    unreadable: frozenset[bytes]
    candidate: CandidatePart | None = None
    refused: str = ""

    @property
    def parts(self) -> Iterator[bytes]:
        """The addresses of root and access table and, where that is served, of the candidate side."""
        head = self.head
        served = head.parts if self.candidate is not None else (head.root, head.access)
        return map(bytes.fromhex, served)


@dataclass(frozen=True, slots=True)
class _Read:
    """The parts of one snapshot: the addresses of its chunks, and its access table. `chunks` and `stored` also have
    those of other snapshots in use, by address.
    """

    addresses: tuple[bytes, ...]
    access: AccessTable
    chunks: Mapping[bytes, Chunk]
    stored: Mapping[bytes, bytes]

    def entries(self) -> Iterator[tuple[EntryKey, Entry]]:
        """Every entry of the snapshot."""
        return (entry for address in self.addresses for entry in self.chunks[address])


class SnapshotReader:
    """Reads snapshots and remembers the parts of those in use, so that the next one loads only what is new. For one
    thread.
    """

    def __init__(self, contents: ContentMemory) -> None:
        self._contents = contents
        self._chunks: Mapping[bytes, Chunk] = {}
        # The stored bytes of roots, access tables, chunks and candidate sides, for the disk.
        self._stored: Mapping[bytes, bytes] = {}
        self._candidates: Mapping[bytes, CandidatePart] = {}
        self._in_use_before: frozenset[bytes] = frozenset()
        self._fetched: frozenset[bytes] = frozenset()
        self._next_sweep = time.monotonic() + _SWEEP_S

    def read(self, head: SnapshotHead, before: Loaded | None, blobs: Blobs, doubtful: AbstractSet[bytes]) -> Loaded:
        """The snapshot that `head` describes. `before` is the one in use, which is returned as it is when reading it
        again made no more of it readable.

        `doubtful`: contents that could not be decrypted before and are read again. Raises SnapshotUnreadable,
        ChunkError and CacheRefused.
        """
        if not head.genuine:
            raise SnapshotUnreadable(_FORGED)
        parts = self._parts_of(head, before, blobs)
        changes = self._changes(before, parts)
        entries = _new_entries(parts, changes)
        _check_rules(entries, parts.access)
        unreadable = self._fetch_contents(entries, blobs, doubtful)
        candidate = self._candidate(head, parts.access, blobs, doubtful)
        bad = frozenset(unreadable) | candidate.unreadable.keys()
        if before is not None and not is_newer(head, before):
            # Read once more, for what could not be opened.
            if (before.unreadable, before.refused) == (bad, candidate.refused):
                return before
            log.info("snapshot.mended", environment=head.environment, epoch=head.epoch)
        current = before.snapshot if before is not None else None
        snapshot = _put_together(head, parts, current, changes, unreadable)
        remember_marks(snapshot, current)
        self._chunks, self._stored = parts.chunks, {**parts.stored, **candidate.stored}
        _log_unserved(head, snapshot, unreadable)
        if candidate.part is None:
            return Loaded(snapshot, head, parts.addresses, bad, refused=_told(head, candidate.refused))
        self._candidates = {**self._candidates, bytes.fromhex(head.rollout): candidate.part}
        former = (before.snapshot, before.candidate) if before is not None else (None, None)
        snapshot, part = with_sides(snapshot, candidate, *former)
        return Loaded(snapshot, head, parts.addresses, bad, part)

    def part(self, address: bytes) -> Part:
        """The root, access table, chunk or candidate side at this address as it is stored, with the contents that it
        names.
        """
        candidate = self._candidates.get(address)
        entries = self._chunks.get(address, ()) if candidate is None else known_entries(candidate)
        return Part(self._stored[address], *self._contents.stored(_contents_of(entries)))

    def let_go(self, loaded: Collection[Loaded]) -> None:
        """Forget, now and then, the chunks and contents that none of these snapshots has.

        What was in use at the last such time, or was fetched since, is kept once more, because a stream may still be
        writing it.
        """
        now = time.monotonic()
        if now < self._next_sweep:
            return
        self._next_sweep = now + _SWEEP_S
        in_use = frozenset(address for each in loaded for address in _in_use(each.snapshot))
        self._contents.keep(in_use | self._in_use_before | self._fetched)
        self._in_use_before, self._fetched = in_use, frozenset()
        chunks = {address for each in loaded for address in each.chunks}
        roots = {address for each in loaded for address in each.parts}
        self._chunks = {address: chunk for address, chunk in self._chunks.items() if address in chunks}
        self._candidates = {address: part for address, part in self._candidates.items() if address in roots}
        self._stored = {address: data for address, data in self._stored.items() if address in chunks | roots}

    def _parts_of(self, head: SnapshotHead, before: Loaded | None, blobs: Blobs) -> _Read:
        root, table = bytes.fromhex(head.root), bytes.fromhex(head.access)
        stored = {**self._stored, **read_parts(blobs, {root, table} - self._stored.keys())}
        addresses, access = decode_root(stored[root]), _access(head, stored[table], before)
        new = read_parts(blobs, {each for each in addresses if each not in self._chunks})
        chunks = {**self._chunks, **{address: decode_chunk(data) for address, data in new.items()}}
        return _Read(addresses, access, chunks, {**stored, **new})

    def _changes(self, before: Loaded | None, parts: _Read) -> dict[EntryKey, Entry | None] | None:
        """The entries that differ from the snapshot before, None for one that is gone. None in place of all when the
        next snapshot cannot be made from that one: its access rules differ, or not all of it could be read.
        """
        if before is None or before.snapshot.access is not parts.access:
            return None
        if before.unreadable or before.snapshot.unknown:
            return None
        other = [(was, now) for was, now in zip(before.chunks, parts.addresses, strict=True) if was != now]
        changes = changed_entries((self._chunks[was] for was, _ in other), (parts.chunks[now] for _, now in other))
        return changes if all(word in by_word for word, _ in changes) else None

    def _candidate(
        self, head: SnapshotHead, access: AccessTable, blobs: Blobs, doubtful: AbstractSet[bytes]
    ) -> Candidate:
        """The candidate side of the snapshot that `head` describes, with its contents fetched. One that is forged,
        lacks something or cannot be read is refused by itself (rollouts.md R2).
        """
        if not head.rollout:
            return NO_CANDIDATE
        if not head.rollout_genuine:
            return Candidate(refused=_FORGED)
        address = bytes.fromhex(head.rollout)
        try:
            data = self._stored.get(address) or read_parts(blobs, {address})[address]
            part = self._candidates.get(address) or decode_rollout(data)
            entries = list(known_entries(part))
            _check_rules(entries, access)
            return Candidate(part, {address: data}, self._fetch_contents(entries, blobs, doubtful))
        except (SnapshotUnreadable, ChunkError, CacheRefused) as error:
            return Candidate(refused=str(error))

    def _fetch_contents(
        self, entries: Iterable[tuple[EntryKey, Entry]], blobs: Blobs, doubtful: AbstractSet[bytes]
    ) -> dict[bytes, str]:
        """Load the contents of these entries that are not in memory, and again those in `doubtful`; returns the
        addresses that still cannot be decrypted, each with the reason.
        """
        wanted = _contents_of(entries)
        missing = self._contents.missing(wanted) | (wanted & doubtful)
        self._contents.add(*read_contents(blobs, missing))
        self._fetched |= missing
        return self._contents.unreadable(missing)


def is_newer(head: SnapshotHead, loaded: Loaded | None) -> bool:
    """Whether the snapshot of `head` replaces `loaded`: always when it has another lineage, else when its epoch is
    higher (decisions D5b, reliability P5), or it alone has a candidate side.
    """
    if loaded is None or head.lineage != loaded.head.lineage or head.epoch > loaded.head.epoch:
        return True
    # What a process of the version before kept on disk is without the candidate side.
    return head.epoch == loaded.head.epoch and head.rollout != "" == loaded.head.rollout


def _access(head: SnapshotHead, data: bytes, before: Loaded | None) -> AccessTable:
    """The access table in these bytes; the very object of the snapshot before when the bytes are the same, so that
    streams see at once that no rule changed.
    """
    if before is not None and before.head.access == head.access:
        return before.snapshot.access
    return decode_access(data)


def _new_entries(parts: _Read, changes: Mapping[EntryKey, Entry | None] | None) -> list[tuple[EntryKey, Entry]]:
    """The entries that the snapshot before did not have: those in `changes`, or all when `changes` is None."""
    if changes is None:
        return list(parts.entries())
    return [(key, entry) for key, entry in changes.items() if entry is not None]


def _put_together(
    head: SnapshotHead,
    parts: _Read,
    current: Snapshot | None,
    changes: Mapping[EntryKey, Entry | None] | None,
    unreadable: Mapping[bytes, str],
) -> Snapshot:
    """The new snapshot: made from `current` by `changes` where both are known and everything could be read, else from
    all its parts.
    """
    if current is not None and changes is not None and not unreadable:
        return snapshot_after(current, lineage=head.lineage, epoch=head.epoch, access=parts.access, changes=changes)
    entries = [_readable(key, entry, current, unreadable) for key, entry in parts.entries()]
    return _snapshot(head, parts.access, entries)


def _contents_of(entries: Iterable[tuple[EntryKey, Entry]]) -> set[bytes]:
    return {content.blob for _, entry in entries for content in contents_in(entry)}


def _readable(
    key: EntryKey, entry: Entry, current: Snapshot | None, unreadable: Mapping[bytes, str]
) -> tuple[EntryKey, Entry | UnreadableName]:
    """The entry as this process can serve it. When its content cannot be decrypted, the last one that was served under
    the name takes its place (F14), or an UnreadableName.
    """
    if isinstance(entry, WithheldName) and entry.content is not None and entry.content.blob in unreadable:
        return key, WithheldName(entry.reason)
    if not unreadable or not isinstance(entry, Served):
        return key, entry
    proven = entry.proven if entry.proven is not None and entry.proven.blob not in unreadable else None
    reason = unreadable.get(entry.content.blob)
    if reason is None:
        return key, replace(entry, proven=proven)
    word, name = key
    state = current.types.get(word) if current is not None else None
    known = state.served.get(name) if state is not None else None
    if known is None or known.content.blob in unreadable:
        return key, UnreadableName(reason)
    return key, Served(known.content, proven, entry.rules)


def _in_use(snapshot: Snapshot) -> Iterator[bytes]:
    """The address of every content of the snapshot, on either side, that some client may be sent."""
    states = [*snapshot.types.values()]
    if snapshot.candidate is not None:
        states += [state for state in snapshot.candidate.types.values() if state is not snapshot.types[state.kind.word]]
    for state in states:
        for entries in (state.served, state.partly):
            for entry in entries.values():
                yield from (content.blob for content in contents_in(entry))


def _check_rules(entries: Iterable[tuple[EntryKey, Entry]], access: AccessTable) -> None:
    """Raise ChunkError when an entry names an access rule that the table does not have: its other rules alone would
    decide wrongly.
    """
    rows = {entry.rules for _, entry in entries if isinstance(entry, Served) and entry.rules}
    if not all(access.knows(row) for row in rows):
        raise ChunkError("an entry names an access rule that the access table does not have")


def _told(head: SnapshotHead, refused: str) -> str:
    """The reason why the candidate side of a snapshot is refused, after it was logged; empty where it is not."""
    if refused:
        log.warning("candidate.refused", environment=head.environment, epoch=head.epoch, reason=refused)
    return refused


def _log_unserved(head: SnapshotHead, snapshot: Snapshot, unreadable: Mapping[bytes, str]) -> None:
    """Log what this process cannot serve of a snapshot: contents that cannot be decrypted, and unknown types."""
    if unreadable:
        log.warning(
            "secret.unreadable",
            environment=head.environment,
            epoch=head.epoch,
            contents=len(unreadable),
            reason=min(unreadable.values()),
        )
    if snapshot.unknown:
        log.warning("types.unknown", environment=head.environment, epoch=head.epoch, types=sorted(snapshot.unknown))


def _snapshot(
    head: SnapshotHead, access: AccessTable, entries: list[tuple[EntryKey, Entry | UnreadableName]]
) -> Snapshot:
    snapshot = snapshot_from_entries(
        environment=head.environment, lineage=head.lineage, epoch=head.epoch, access=access, entries=entries
    )
    if access.rules:
        # Here, and not on the event loop when the first audience needs it.
        for state in snapshot.types.values():
            state.by_rules()
    return snapshot
