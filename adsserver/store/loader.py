"""Follows the published snapshots: on a hint or each second it looks for a newer (lineage, epoch) and loads only what
is new. Each directory it serves is kept on disk; a process that starts while the database does not answer serves that
(law 4, reliability P8).

A snapshot is offered whole or not at all (reliability P1); one that cannot be read or verified is not offered and the
previous one stays (P10). An epoch never goes back within a lineage (P5).
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

from adsserver.ports import ClientToken, Directory
from adsserver.store.blobs import Blobs, DatabaseBlobs, SnapshotUnreadable
from adsserver.store.contents import ContentMemory
from adsserver.store.disk_format import CacheRefused, Part, SavedDirectory, SavedSnapshot
from adsserver.store.last_good import LastGood
from adsserver.store.snapshot_reading import Loaded, SnapshotReader, is_newer
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
from xdscore.chunks import ChunkError
from xdscore.environment_choice import EnvironmentChoice

log = structlog.get_logger(__name__)

_JITTER = 0.2  # replicas that started together must not ask together (reliability (e): poll ± 20 %)
_WRITE_PAUSE_S = 0.1  # between two slices of writing to disk
_REREAD_S = 10.0  # what could not be opened is read again this often: somebody may have mended it


@dataclass(frozen=True, slots=True)
class LoaderStatus:
    """The status of the loader.

    loaded: (lineage, epoch) of the snapshot that each environment is served from.
    database_ok: whether the database answers.
    detail: what is wrong, also with what the database has, for people; empty when nothing is.
    refused: why an environment's newest snapshot is not served, by environment.
    unfit: why this process does not fit the installation, filled in by the store.
    """

    loaded: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    database_ok: bool = False
    detail: str = "the database was not asked yet"
    refused: Mapping[str, str] = field(default_factory=dict)
    unfit: tuple[str, ...] = ()


class Loader:
    """Loads new snapshots in a thread and hands them over to be served. `look_now` may be called from any thread."""

    def __init__(
        self, *, contents: ContentMemory, last_good: LastGood, on_directory: Callable[[Directory], None]
    ) -> None:
        self._reader = SnapshotReader(contents)
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
        self._loaded: dict[str, Loaded] = {}
        # By environment: why its newest snapshot is not served.
        self._refused: dict[str, str] = {}
        self._complete = False
        self._database_answered = False
        self._from_disk = ""
        self._reread_at = 0.0
        self._taken_over = TakenOver()
        self._status = LoaderStatus()

    def start(self) -> None:
        """Start the thread that follows the database."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Ask the thread to end; `timeout_s` is how long `wait_ended` then waits. What it loads meanwhile is not
        served.
        """
        self._ends_at = time.monotonic() + timeout_s
        self._stopping.set()
        self._wake.set()

    def wait_ended(self) -> None:
        """Wait until the thread ended, or the time given to `stop` is over."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, self._ends_at - time.monotonic()))

    def look_now(self) -> None:
        """Let the thread look for new snapshots at once."""
        self._wake.set()

    def status(self) -> LoaderStatus:
        """The latest status; a value that never changes."""
        return self._status

    def serving(self) -> Mapping[str, Serving]:
        """The snapshot that each environment is served from, by the environment's key; safe from any thread."""
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
        """Load what is new from the database; returns whether some of it was not yet written to disk."""
        close_old_connections()
        try:
            directory = self._newest()
            self._database_answered = True
            self._from_disk = ""
            self._offer(directory)
            self._set_status(
                database_ok=True, detail="; ".join((*self._refused.values(), *self._one_sided(), *_unknown(directory)))
            )
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
        """Where the database's newest snapshot of an environment is older than what is served here, because the
        database lost something, begin a new lineage of snapshots: its epochs then count as newer than all before
        (decisions D5b).
        """
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
        """Serve the snapshots on disk that can be verified, unless the database has answered since the start."""
        try:
            saved = self._last_good.saved()
            if saved is None:
                return
            heads = [
                snapshot_head(
                    environment=key,
                    lineage=at.lineage,
                    epoch=at.epoch,
                    root=at.root,
                    access=at.access,
                    mac=at.mac,
                    rollout=at.rollout,
                    rollout_mac=at.rollout_mac,
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
            key: SavedSnapshot(
                head.lineage, head.epoch, head.root, head.access, head.mac, head.rollout, head.rollout_mac
            )
            for key, head in heads.items()
        }
        directory = SavedDirectory(self._directory.environments, saved, self._directory.tokens)
        return self._last_good.keep(directory, self._parts_to_keep)

    def _parts_to_keep(self) -> dict[bytes, Callable[[], Part]]:
        loaded = [self._loaded[key] for key in self._directory.snapshots]
        roots = {address for each in loaded for address in each.parts}
        chunks = {address for each in loaded for address in each.chunks}
        return {address: partial(self._reader.part, address) for address in roots | chunks}

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
            if key in listed and (is_newer(head, self._loaded.get(key)) or key in rereads):
                self._load_or_keep(head, blobs)
                self._complete = self._complete and key in self._loaded
        snapshots = {key: loaded.snapshot for key, loaded in self._loaded.items()}
        self._reader.let_go(self._loaded.values())
        return Directory(environments, snapshots, self._tokens, self._api_tokens)

    def _time_to_reread(self) -> frozenset[str]:
        """The environments in which some content could not be decrypted, or the candidate side was refused, when it is
        time to try again; else none.
        """
        if time.monotonic() < self._reread_at:
            return frozenset()
        self._reread_at = time.monotonic() + _REREAD_S
        return frozenset(key for key, loaded in self._loaded.items() if loaded.unreadable or loaded.refused)

    def _load_or_keep(self, head: SnapshotHead, blobs: Blobs) -> None:
        before = self._loaded.get(head.environment)
        try:
            doubtful = {address for each in self._loaded.values() for address in each.unreadable}
            loaded = self._reader.read(head, before, blobs, doubtful)
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

    def _one_sided(self) -> Iterable[str]:
        """A sentence for each environment whose candidate side this process refuses to serve."""
        for key, loaded in self._loaded.items():
            if loaded.refused:
                yield (
                    f"the candidate side of snapshot {loaded.head.epoch} of '{key}' is refused ({loaded.refused}); its "
                    "stable side is served to everybody"
                )

    def _set_status(self, *, database_ok: bool, detail: str) -> None:
        loaded = {key: (snapshot.lineage, snapshot.epoch) for key, snapshot in self._directory.snapshots.items()}
        self._status = LoaderStatus(loaded, database_ok, detail, self._refused)


def _token(row: ClientTokenRow) -> ClientToken:
    return ClientToken(row.subject, row.environment, _unix(row.expires_at))


def _unix(ends: datetime | None) -> float:
    return ends.timestamp() if ends is not None else math.inf


def _went_back(head: SnapshotHead | None, held: SnapshotHead) -> bool:
    """Whether the newest snapshot in the database, `head`, is older than `held`, which is served here, or other content
    of the same epoch, or gone (None).
    """
    if head is None:
        return True
    if not head.genuine or head.lineage != held.lineage:
        return False
    return head.epoch < held.epoch or (head.epoch == held.epoch and not held.is_of(head.parts))


def _unknown(directory: Directory) -> Iterable[str]:
    """A sentence for each environment with resource types that a later version published and this one does not know."""
    for key, snapshot in directory.snapshots.items():
        if snapshot.unknown:
            words = ", ".join(sorted(snapshot.unknown))
            yield f"'{key}' has resource types that this version does not know and does not serve ({words})"


def _moment(unix_time: float) -> str:
    """A Unix time for people: the time of day, and the date unless it is today."""
    at, today = datetime.fromtimestamp(unix_time, UTC), datetime.now(UTC).date()
    return f"{at:%H:%M} UTC" if at.date() == today else f"{at:%Y-%m-%d %H:%M} UTC"
