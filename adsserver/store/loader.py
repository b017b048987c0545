"""Follows the published snapshots: on a hint or each second it looks for a newer (lineage, epoch) and loads only what
is new. Each directory it serves is kept on disk; a process that starts while the database does not answer serves that
(law 4, reliability P8).

A snapshot is offered whole or not at all (reliability P1); one that cannot be read or verified is not offered and the
previous one stays (P10). An epoch never goes back within a lineage (P5). One secret that cannot be opened costs nothing
but itself (law 1): its last content that could stays, and without one its name is unreadable until it can be opened.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

import structlog
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from adsserver.engine.versions import remember_marks
from adsserver.ports import ClientToken, Directory
from adsserver.store.blobs import Blobs, DatabaseBlobs, SnapshotUnreadable, read_contents, read_parts
from adsserver.store.contents import ContentMemory
from adsserver.store.disk_format import CacheRefused, Part, SavedDirectory, SavedSnapshot
from adsserver.store.last_good import LastGood
from adsserver.store.taken_over import TakenOver
from controlplane.accounts.selectors import (
    ClientTokenRow,
    api_tokens_valid,
    api_tokens_version,
    client_tokens_valid,
    client_tokens_version,
)
from controlplane.catalog.selectors import environment_list
from controlplane.clients.facts import Serving
from controlplane.snapshots.lineages import lineage_check
from controlplane.snapshots.selectors import SnapshotHead, snapshot_head, snapshot_heads
from xdscore.access import AccessTable
from xdscore.chunks import Chunk, ChunkError, changed_entries, decode_access, decode_chunk, decode_root
from xdscore.resource_types import by_word
from xdscore.selectors import EnvironmentChoice
from xdscore.snapshot import (
    Content,
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

_JITTER = 0.2  # replicas that started together must not ask together (reliability (e): poll ± 20 %)
_WRITE_PAUSE_S = 0.1  # between two slices of writing to disk
_REREAD_S = 10.0  # what could not be opened is read again this often: somebody may have mended it
_SWEEP_S = 60.0  # twice the time a slow stream may take for one write


@dataclass(frozen=True, slots=True)
class LoaderStatus:
    """The status of the loader: (lineage, epoch) by environment; `database_ok` is false while the database does not
    answer. `detail` says in words what is wrong, also with what the database has; `refused`, by environment, why its
    newest snapshot is not served. `unfit`: why this process does not fit the installation, as the store adds it.
    """

    loaded: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    database_ok: bool = False
    detail: str = "the database was not asked yet"
    refused: Mapping[str, str] = field(default_factory=dict)
    unfit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The newest snapshot of an environment that could be loaded, and where it came from."""

    snapshot: Snapshot
    head: SnapshotHead
    chunks: tuple[bytes, ...]
    unreadable: frozenset[bytes]


class Loader:
    """Loads new snapshots and offers them, in one thread; `look_now` may be called from anywhere."""

    def __init__(
        self, *, contents: ContentMemory, last_good: LastGood, on_directory: Callable[[Directory], None]
    ) -> None:
        self._contents = contents
        self._last_good = last_good
        self._on_directory = on_directory
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._ends_at = math.inf
        self._thread = threading.Thread(target=self._run, name="loader", daemon=True)
        self._directory = Directory()
        self._tokens_version: tuple[int, int] | None = None
        self._tokens: Mapping[str, ClientToken] = {}
        self._api_tokens_version: tuple[int, int] | None = None
        self._api_tokens: Mapping[str, float] | None = None
        self._chunks: dict[bytes, Chunk] = {}
        # The stored bytes of roots, access tables and chunks, for the disk.
        self._parts: dict[bytes, bytes] = {}
        self._loaded: dict[str, _Loaded] = {}
        # By environment: why its newest snapshot is not served.
        self._refused: dict[str, str] = {}
        self._complete = False
        self._database_answered = False
        self._from_disk = ""
        self._in_use_before: frozenset[bytes] = frozenset()
        self._fetched: frozenset[bytes] = frozenset()
        self._reread_at = 0.0
        self._next_sweep = time.monotonic() + _SWEEP_S
        self._taken_over = TakenOver()
        self._status = LoaderStatus()

    def start(self) -> None:
        """Start the thread that follows the database."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Ask the thread to end within `timeout_s` seconds; what it loads meanwhile is not offered."""
        self._ends_at = time.monotonic() + timeout_s
        self._stopping.set()
        self._wake.set()

    def wait_ended(self) -> None:
        """Wait until the thread ended, or the time given to `stop` is over."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, self._ends_at - time.monotonic()))

    def look_now(self) -> None:
        """Look for new snapshots at once."""
        self._wake.set()

    def status(self) -> LoaderStatus:
        """The latest status; each is a new value that never changes."""
        return self._status

    def serving(self) -> Mapping[str, Serving]:
        """What each environment is served from, for those who wait for a change; safe from any thread."""
        status = self._status
        found = {key: Serving(lineage, epoch) for key, (lineage, epoch) in status.loaded.items()}
        refused = {key: replace(found.get(key, Serving()), refused=why) for key, why in status.refused.items()}
        return found | refused

    def _run(self) -> None:
        poll_s = settings.PARLEY.limits.reconcile_poll_ms / 1000
        more_to_write = False
        while not self._stopping.is_set():
            self._wake.clear()
            more_to_write = self._look()
            pause_s = poll_s * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load, keeps no secret
            self._wake.wait(_WRITE_PAUSE_S if more_to_write else pause_s)
        # What was served last is what a start without database must find.
        while more_to_write and time.monotonic() < self._ends_at:
            time.sleep(_WRITE_PAUSE_S)
            more_to_write = self._keep_on_disk()

    def _look(self) -> bool:
        """Load what is new; returns whether the disk still lacks some of it."""
        close_old_connections()
        try:
            directory = self._newest()
            self._database_answered = True
            self._from_disk = ""
            self._offer(directory)
            self._set_status(database_ok=True, detail="; ".join((*self._refused.values(), *_unknown(directory))))
            return self._keep_on_disk()
        except DatabaseError as error:
            if not self._database_answered:
                self._restore()
            self._set_status(database_ok=False, detail=f"{self._from_disk}the database does not answer: {error}")
        except Exception:
            log.exception("loader.failed")
            self._set_status(database_ok=True, detail="loading failed; the log has the reason")
        return False

    def _offer(self, directory: Directory) -> None:
        if directory != self._directory and not self._stopping.is_set():
            self._directory = directory
            self._on_directory(directory)
            self._taken_over.tell()

    def _newest(self) -> Directory:
        environments = tuple(environment.choice for environment in environment_list())
        self._look_at_tokens()
        heads = snapshot_heads()
        self._look_for_losses({environment.key for environment in environments}, heads)
        return self._directory_of(environments, heads, DatabaseBlobs())

    def _look_for_losses(self, environments: Collection[str], heads: Iterable[SnapshotHead]) -> None:
        """Begin a new lineage where the database no longer has what is served here (decisions D5b)."""
        newest = {head.environment: head for head in heads}
        for key, loaded in self._loaded.items():
            if key in environments and _went_back(newest.get(key), loaded.head):
                lineage_check(held=loaded.head)

    def _look_at_tokens(self) -> None:
        # The version first: what is written between the two reads is then read again.
        version = client_tokens_version()
        if version != self._tokens_version:
            self._tokens = {row.digest: _token(row) for row in client_tokens_valid()}
            self._tokens_version = version
        version = api_tokens_version()
        if version != self._api_tokens_version:
            self._api_tokens = {digest: _unix(ends) for digest, ends in api_tokens_valid().items()}
            self._api_tokens_version = version

    def _restore(self) -> None:
        """Serve what can be verified on disk, as long as the database never answered."""
        try:
            saved = self._last_good.saved()
            if saved is None:
                return
            heads = [
                snapshot_head(
                    environment=key, lineage=at.lineage, epoch=at.epoch, root=at.root, access=at.access, mac=at.mac
                )
                for key, at in saved.snapshots.items()
            ]
            self._tokens = saved.tokens
            directory = self._directory_of(saved.environments, heads, self._last_good.blobs())
        except Exception:
            log.exception("cache.failed")
            return
        if directory.snapshots:
            self._offer(directory)
            self._from_disk = f"serving the snapshot of {_moment(saved.saved_at)} from disk: "
            log.warning("cache.served", saved_at=_moment(saved.saved_at), environments=sorted(directory.snapshots))

    def _keep_on_disk(self) -> bool:
        if not self._complete:
            # The disk may still have what the database has only damaged.
            return False
        heads = {key: loaded.head for key, loaded in self._loaded.items() if key in self._directory.snapshots}
        saved = {
            key: SavedSnapshot(head.lineage, head.epoch, head.root, head.access, head.mac)
            for key, head in heads.items()
        }
        directory = SavedDirectory(self._directory.environments, saved, self._directory.tokens)
        return self._last_good.keep(directory, self._parts_to_keep)

    def _parts_to_keep(self) -> dict[bytes, Callable[[], Part]]:
        loaded = [self._loaded[key] for key in self._directory.snapshots]
        roots = {bytes.fromhex(address) for each in loaded for address in (each.head.root, each.head.access)}
        chunks = {address for each in loaded for address in each.chunks}
        return {address: partial(self._part, address) for address in roots | chunks}

    def _part(self, address: bytes) -> Part:
        return Part(self._parts[address], *self._contents.stored(_contents_of(self._chunks.get(address, ()))))

    def _directory_of(
        self, environments: tuple[EnvironmentChoice, ...], heads: Iterable[SnapshotHead], blobs: Blobs
    ) -> Directory:
        newest = {head.environment: head for head in heads}
        listed = {environment.key for environment in environments}
        # What an environment was served from must not come back with another one of its name.
        self._loaded = {key: loaded for key, loaded in self._loaded.items() if key in listed}
        self._complete = True
        self._refused = {}
        rereads = self._time_to_reread()
        for key, head in newest.items():
            if key in listed and (_is_newer(head, self._loaded.get(key)) or key in rereads):
                self._load_or_keep(head, blobs)
                self._complete = self._complete and key in self._loaded
        snapshots = {key: loaded.snapshot for key, loaded in self._loaded.items()}
        self._let_go(snapshots)
        return Directory(environments, snapshots, self._tokens, self._api_tokens)

    def _time_to_reread(self) -> frozenset[str]:
        """The environments in which something could not be opened, when it is time to look again; else none."""
        if time.monotonic() < self._reread_at:
            return frozenset()
        self._reread_at = time.monotonic() + _REREAD_S
        return frozenset(key for key, loaded in self._loaded.items() if loaded.unreadable)

    def _load_or_keep(self, head: SnapshotHead, blobs: Blobs) -> None:
        before = self._loaded.get(head.environment)
        try:
            loaded = self._load(head, before, blobs)
        except (SnapshotUnreadable, ChunkError, CacheRefused) as error:
            kept = before.snapshot.epoch if before is not None else None
            log.warning(
                "snapshot.refused", environment=head.environment, epoch=head.epoch, reason=str(error), kept_epoch=kept
            )
            meanwhile = f"snapshot {kept} is served on" if kept is not None else "nothing of it is served"
            self._refused[head.environment] = (
                f"snapshot {head.epoch} of '{head.environment}' is refused ({error}); {meanwhile}"
            )
            return
        if loaded is not before:
            self._loaded[head.environment] = loaded
            self._taken_over.add(head, before.head if before is not None else None)

    def _load(self, head: SnapshotHead, before: _Loaded | None, blobs: Blobs) -> _Loaded:
        if not head.genuine:
            raise SnapshotUnreadable(
                "its signature does not hold: it was altered, or signed under a key that is not configured"
            )
        root, table = bytes.fromhex(head.root), bytes.fromhex(head.access)
        parts = self._parts | read_parts(blobs, {root, table} - self._parts.keys())
        addresses, access = decode_root(parts[root]), _access(head, parts[table], before)
        new = read_parts(blobs, {each for each in addresses if each not in self._chunks})
        chunks = self._chunks | {address: decode_chunk(data) for address, data in new.items()}
        changes = self._changes(before, access, addresses, chunks)
        if changes is not None:
            entries = [(key, entry) for key, entry in changes.items() if entry is not None]
        else:
            entries = [entry for address in addresses for entry in chunks[address]]
        _check_rules(entries, access)
        unreadable = self._fetch_contents(entries, blobs)
        if before is not None and not _is_newer(head, before):
            # Read once more, for what could not be opened.
            if before.unreadable == unreadable.keys():
                return before
            log.info("snapshot.mended", environment=head.environment, epoch=head.epoch)
        current = before.snapshot if before is not None else None
        if current is not None and changes is not None and not unreadable:
            snapshot = snapshot_after(current, lineage=head.lineage, epoch=head.epoch, access=access, changes=changes)
        else:
            whole = (entry for address in addresses for entry in chunks[address])
            snapshot = _snapshot(head, access, [_readable(key, entry, current, unreadable) for key, entry in whole])
        remember_marks(snapshot, current)
        self._chunks, self._parts = chunks, parts | new
        _log_unserved(head, snapshot, unreadable)
        return _Loaded(snapshot, head, addresses, frozenset(unreadable))

    def _changes(
        self, before: _Loaded | None, access: AccessTable, addresses: tuple[bytes, ...], chunks: Mapping[bytes, Chunk]
    ) -> dict[EntryKey, Entry | None] | None:
        """The entries that differ from the snapshot before; None where that snapshot is not one to begin with: under
        other rules, and where not all of it could be read.
        """
        if before is None or before.snapshot.access is not access or before.unreadable or before.snapshot.unknown:
            return None
        other = [(was, now) for was, now in zip(before.chunks, addresses, strict=True) if was != now]
        changes = changed_entries((self._chunks[was] for was, _ in other), (chunks[now] for _, now in other))
        return changes if all(word in by_word for word, _ in changes) else None

    def _fetch_contents(self, entries: list[tuple[EntryKey, Entry]], blobs: Blobs) -> dict[bytes, str]:
        """Load contents that are missing or could not be opened; returns those that still cannot be, with why."""
        wanted = _contents_of(entries)
        doubtful = wanted & {address for loaded in self._loaded.values() for address in loaded.unreadable}
        missing = self._contents.missing(wanted) | doubtful
        self._contents.add(*read_contents(blobs, missing))
        self._fetched |= missing
        return self._contents.unreadable(missing)

    def _let_go(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Drop now and then the chunks and contents that no snapshot has.

        What was in use at the sweep before this one, or came since, stays one more: a stream may still be writing it.
        """
        now = time.monotonic()
        if now < self._next_sweep:
            return
        self._next_sweep = now + _SWEEP_S
        in_use = frozenset(
            content.blob
            for snapshot in snapshots.values()
            for state in snapshot.types.values()
            for entries in (state.served, state.partly)
            for entry in entries.values()
            for content in _contents_in(entry)
        )
        self._contents.keep(in_use | self._in_use_before | self._fetched)
        self._in_use_before, self._fetched = in_use, frozenset()
        chunks = {address for loaded in self._loaded.values() for address in loaded.chunks}
        self._chunks = {address: chunk for address, chunk in self._chunks.items() if address in chunks}
        heads = [loaded.head for loaded in self._loaded.values()]
        kept = chunks | {bytes.fromhex(address) for head in heads for address in (head.root, head.access)}
        self._parts = {address: data for address, data in self._parts.items() if address in kept}

    def _set_status(self, *, database_ok: bool, detail: str) -> None:
        loaded = {key: (snapshot.lineage, snapshot.epoch) for key, snapshot in self._directory.snapshots.items()}
        self._status = LoaderStatus(loaded, database_ok, detail, self._refused)


def _token(row: ClientTokenRow) -> ClientToken:
    return ClientToken(row.subject, row.environment, _unix(row.expires_at))


def _unix(ends: datetime | None) -> float:
    return ends.timestamp() if ends is not None else math.inf


def _is_newer(head: SnapshotHead, loaded: _Loaded | None) -> bool:
    """Whether the snapshot replaces the one that is loaded. Another lineage replaces whatever is there; within one,
    only a higher epoch does (decisions D5b, reliability P5).
    """
    return loaded is None or head.lineage != loaded.head.lineage or head.epoch > loaded.head.epoch


def _access(head: SnapshotHead, data: bytes, before: _Loaded | None) -> AccessTable:
    """The access table; the same object while its bytes are, so that streams see at once that no rule changed."""
    if before is not None and before.head.access == head.access:
        return before.snapshot.access
    return decode_access(data)


def _went_back(head: SnapshotHead | None, held: SnapshotHead) -> bool:
    """Whether what the database has is older than what is held here, or other content of the same epoch."""
    if head is None:
        return True
    if not head.genuine or head.lineage != held.lineage:
        return False
    return head.epoch < held.epoch or (
        head.epoch == held.epoch and (head.root, head.access) != (held.root, held.access)
    )


def _contents_of(entries: Iterable[tuple[EntryKey, Entry]]) -> set[bytes]:
    return {content.blob for _, entry in entries for content in _contents_in(entry)}


def _contents_in(entry: Entry) -> tuple[Content, ...]:
    """The contents of an entry that some client may be sent."""
    match entry:
        case Served(content=content, proven=None) | WithheldName(content=Content() as content):
            return (content,)
        case Served(content=content, proven=Content() as proven):
            return (content, proven)
        case _:
            return ()


def _readable(
    key: EntryKey, entry: Entry, current: Snapshot | None, unreadable: Mapping[bytes, str]
) -> tuple[EntryKey, Entry | UnreadableName]:
    """The entry as this process can serve it: without its content, the last one it served of the name (F14)."""
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


def _unknown(directory: Directory) -> Iterable[str]:
    """What is not served because a later version publishes it, a sentence for each environment."""
    for key, snapshot in directory.snapshots.items():
        if snapshot.unknown:
            words = ", ".join(sorted(snapshot.unknown))
            yield f"'{key}' has resource types that this version does not know and does not serve ({words})"


def _check_rules(entries: Iterable[tuple[EntryKey, Entry]], access: AccessTable) -> None:
    """Raise ChunkError for a name with a rule that is not in the table: the others alone would decide it."""
    rows = {entry.rules for _, entry in entries if isinstance(entry, Served) and entry.rules}
    if not all(access.knows(row) for row in rows):
        raise ChunkError("an entry names an access rule that the access table does not have")


def _log_unserved(head: SnapshotHead, snapshot: Snapshot, unreadable: Mapping[bytes, str]) -> None:
    """Log the names of a snapshot that are not served here."""
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


def _moment(unix_time: float) -> str:
    """A Unix time as people read it: the time of day, and the date unless it is today."""
    at, today = datetime.fromtimestamp(unix_time, UTC), datetime.now(UTC).date()
    return f"{at:%H:%M} UTC" if at.date() == today else f"{at:%Y-%m-%d %H:%M} UTC"
