"""Follows the published snapshots: on a hint or each second it looks for a newer (lineage, epoch) and loads only what
is new.

A snapshot is offered whole or not at all (reliability P1); one that cannot be read or verified is not offered and the
previous one stays (P10). An epoch never goes back within a lineage (P5).
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from adsserver.ports import Directory
from adsserver.store.contents import ContentMemory
from controlplane.catalog.choices import BlobKind
from controlplane.catalog.selectors import blobs_read, environment_list
from controlplane.snapshots.selectors import SnapshotHead, snapshot_heads
from xdscore.access import AccessTable
from xdscore.chunks import ChunkError, decode_access, decode_chunk, decode_root
from xdscore.snapshot import Entry, EntryKey, Served, Snapshot, content_hash, snapshot_from_entries

log = structlog.get_logger(__name__)

_JITTER = 0.2  # replicas that started together must not ask together (reliability (e): poll ± 20 %)


_SWEEP_S = 60.0  # twice the time a slow stream may take for one write


class SnapshotUnreadable(Exception):
    """A stored snapshot is incomplete, altered, or of a format this process does not read."""


@dataclass(frozen=True, slots=True)
class LoaderStatus:
    """What the loader holds: (lineage, epoch) by environment; `database_ok` is false while the database does not
    answer.
    """

    loaded: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    database_ok: bool = False
    detail: str = "the database was not asked yet"


Chunk = tuple[tuple[EntryKey, Entry], ...]


class Loader:
    """One thread; `look_now` may be called from anywhere."""

    def __init__(self, *, contents: ContentMemory, on_directory: Callable[[Directory], None]) -> None:
        self._contents = contents
        self._on_directory = on_directory
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loader", daemon=True)
        self._directory = Directory()
        self._chunks: dict[bytes, Chunk] = {}
        self._roots: dict[str, tuple[bytes, ...]] = {}
        self._in_use_before: frozenset[bytes] = frozenset()
        self._fetched: frozenset[bytes] = frozenset()
        self._next_sweep = time.monotonic() + _SWEEP_S
        self._status = LoaderStatus()

    def start(self) -> None:
        """Start following."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; what it loads meanwhile is not offered."""
        self._stopping.set()
        self._wake.set()

    def look_now(self) -> None:
        """Look for something new at once."""
        self._wake.set()

    def status(self) -> LoaderStatus:
        """The latest status; a reference, never changed."""
        return self._status

    def _run(self) -> None:
        poll_s = settings.PARLEY.limits.reconcile_poll_ms / 1000
        while not self._stopping.is_set():
            self._wake.clear()
            self._look()
            self._wake.wait(poll_s * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311 - spreads load, keeps no secret

    def _look(self) -> None:
        close_old_connections()
        try:
            directory = self._newest()
        except DatabaseError as error:
            self._set_status(database_ok=False, detail=f"the database does not answer: {error}")
            return
        except Exception:
            log.exception("loader.failed")
            self._set_status(database_ok=True, detail="loading failed; the log has the reason")
            return
        if directory != self._directory and not self._stopping.is_set():
            self._directory = directory
            self._on_directory(directory)
        self._set_status(database_ok=True, detail="")

    def _newest(self) -> Directory:
        environments = environment_list()
        heads = {head.environment: head for head in snapshot_heads()}
        snapshots: dict[str, Snapshot] = {}
        for environment in environments:
            current = self._directory.snapshots.get(environment.key)
            head = heads.get(environment.key)
            if head is not None and _is_newer(head, current):
                current = self._load_or_keep(head, current)
            if current is not None:
                snapshots[environment.key] = current
        self._let_go(snapshots)
        return Directory(tuple(environment.choice for environment in environments), snapshots)

    def _load_or_keep(self, head: SnapshotHead, current: Snapshot | None) -> Snapshot | None:
        try:
            snapshot = self._load(head)
        except (SnapshotUnreadable, ChunkError) as error:
            kept = current.epoch if current is not None else None
            log.warning(
                "snapshot.refused", environment=head.environment, epoch=head.epoch, reason=str(error), kept_epoch=kept
            )
            return current
        log.info("snapshot.loaded", environment=head.environment, lineage=head.lineage, epoch=head.epoch)
        return snapshot

    def _load(self, head: SnapshotHead) -> Snapshot:
        if not head.genuine:
            raise SnapshotUnreadable(
                "its signature does not hold: it was altered, or signed under a key that is not configured"
            )
        roots = _read({bytes.fromhex(head.root), bytes.fromhex(head.access)})
        addresses = decode_root(roots[bytes.fromhex(head.root)])
        access = decode_access(roots[bytes.fromhex(head.access)])
        unknown = {address for address in addresses if address not in self._chunks}
        for address, data in _read(unknown).items():
            self._chunks[address] = decode_chunk(data)
        self._roots[head.environment] = addresses
        entries = [entry for address in addresses for entry in self._chunks[address]]
        self._fetch_contents(entries)
        return _snapshot(head, access, entries)

    def _fetch_contents(self, entries: list[tuple[EntryKey, Entry]]) -> None:
        missing = self._contents.missing(_contents_of(entries))
        plain: dict[bytes, bytes] = {}
        sealed: dict[bytes, bytes] = {}
        for text, kind, data in blobs_read(addresses=(address.hex() for address in missing)):
            address = bytes.fromhex(text)
            if kind is BlobKind.SECRET:
                sealed[address] = data
            elif content_hash(data) == address:
                plain[address] = data
        lost = missing - plain.keys() - sealed.keys()
        if lost:
            raise SnapshotUnreadable(f"{len(lost)} contents are missing or altered, the first is {min(lost).hex()}")
        self._contents.add(plain, sealed)
        self._fetched |= missing

    def _let_go(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Now and then forget the chunks and contents of no snapshot.

        What was in use at the sweep before this one, or came since, stays one more round: a stream may still be
        writing it.
        """
        now = time.monotonic()
        if now < self._next_sweep:
            return
        self._next_sweep = now + _SWEEP_S
        in_use = frozenset(
            content.blob
            for snapshot in snapshots.values()
            for state in snapshot.types.values()
            for entry in state.served.values()
            for content in (entry.content, entry.proven)
            if content is not None
        )
        self._contents.keep(in_use | self._in_use_before | self._fetched)
        self._in_use_before, self._fetched = in_use, frozenset()
        chunks = {address for key in snapshots for address in self._roots.get(key, ())}
        self._chunks = {address: chunk for address, chunk in self._chunks.items() if address in chunks}

    def _set_status(self, *, database_ok: bool, detail: str) -> None:
        loaded = {key: (snapshot.lineage, snapshot.epoch) for key, snapshot in self._directory.snapshots.items()}
        self._status = LoaderStatus(loaded, database_ok, detail)


def _is_newer(head: SnapshotHead, current: Snapshot | None) -> bool:
    """Another lineage replaces whatever is there; within one, only a higher epoch does (resolutions D5b, reliability
    P5).
    """
    return current is None or head.lineage != current.lineage or head.epoch > current.epoch


def _read(addresses: set[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for text, _, data in blobs_read(addresses=(address.hex() for address in addresses)):
        if content_hash(data).hex() == text:
            found[bytes.fromhex(text)] = data
    lost = addresses - found.keys()
    if lost:
        raise SnapshotUnreadable(f"{len(lost)} parts are missing or altered, the first is {min(lost).hex()}")
    return found


def _contents_of(entries: list[tuple[EntryKey, Entry]]) -> set[bytes]:
    served = [entry for _, entry in entries if isinstance(entry, Served)]
    return {entry.content.blob for entry in served} | {
        entry.proven.blob for entry in served if entry.proven is not None
    }


def _snapshot(head: SnapshotHead, access: AccessTable, entries: list[tuple[EntryKey, Entry]]) -> Snapshot:
    return snapshot_from_entries(
        environment=head.environment, lineage=head.lineage, epoch=head.epoch, access=access, entries=entries
    )
