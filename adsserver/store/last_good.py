"""Keeps what the loader serves on disk, and gives it back to one that starts while the database is away (law 4, P8).

A disk that is full or may not be written costs one line in the log: serving goes on, and writing is tried again.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import structlog

from adsserver.store.disk import DiskCache
from adsserver.store.disk_format import CacheRefused, Part, SavedDirectory, decode_directory
from controlplane.catalog.sealing import key_ring

log = structlog.get_logger(__name__)

# The loader's thread writes for this long, then looks for news again: a first copy of 100,000 resources takes seconds.
_SLICE_S = 0.25
# A full disk is not asked each second.
_RETRY_S = 30.0


class LastGood:
    """The last good snapshots on disk, as the loader's thread writes and reads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._disk = DiskCache(folder, key_ring())
        self._kept: SavedDirectory | None = None
        self._failing = False
        self._retry_at = time.monotonic()
        self._seen = b""
        self._refused = ""

    def keep(self, directory: SavedDirectory, parts: Callable[[], Mapping[bytes, Callable[[], Part]]]) -> bool:
        """Write the directory and those of its parts that are new to disk; returns True when the time for one call was
        over and more is left to write. `parts` is called only when something is new. A disk that cannot be written is
        logged, and tried again later.
        """
        now = time.monotonic()
        if directory == self._kept or now < self._retry_at:
            return False
        stamped = replace(directory, saved_at=time.time())
        try:
            done = self._disk.save(stamped, parts(), go_on=lambda: time.monotonic() < now + _SLICE_S)
        except OSError as error:
            self._retry_at = now + _RETRY_S
            if not self._failing:
                log.warning(
                    "cache.unwritable",
                    folder=str(self._folder),
                    reason=error.strerror or str(error),
                    consequence="a restart without database serves an older snapshot, or none; trying again",
                )
            self._failing = True
            return False
        if done:
            self._kept = directory
            if self._failing:
                log.info("cache.writable_again", folder=str(self._folder))
            self._failing = False
        return not done

    def saved(self) -> SavedDirectory | None:
        """The verified directory on disk; None when there is none, when it is refused, or when the same one was looked
        at before.
        """
        try:
            data = self._disk.directory_bytes()
            if data == self._seen:
                return None
            self._seen = data
            return decode_directory(data, key_ring())
        except FileNotFoundError:
            return None
        except CacheRefused as error:
            if str(error) != self._refused:
                log.warning("cache.refused", folder=str(self._folder), reason=str(error))
            self._refused = str(error)
            return None

    def blobs(self) -> "DiskBlobs":
        """The source of blobs from which the snapshots of `saved` are loaded."""
        return DiskBlobs(self._disk)


class DiskBlobs:
    """A source of the blobs of snapshots (blobs.Blobs) that reads files on disk. Its methods raise CacheRefused."""

    def __init__(self, disk: DiskCache) -> None:
        self._disk = disk
        self._plain: dict[bytes, bytes] = {}
        self._sealed: dict[bytes, bytes] = {}

    def parts(self, addresses: Iterable[bytes]) -> dict[bytes, bytes]:
        """The verified blobs at these addresses. The contents stored in the same files are remembered for
        `contents`.
        """
        found = {}
        for address in addresses:
            part = self._disk.part(address)
            found[address] = part.blob
            self._plain.update(part.plain)
            self._sealed.update(part.sealed)
        return found

    def contents(self, addresses: Iterable[bytes]) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        """The contents at these addresses that were in files read by `parts`: the plain ones, then the encrypted
        (sealed) ones. Others are left out.
        """
        wanted = set(addresses)
        return (
            {address: self._plain[address] for address in wanted & self._plain.keys()},
            {address: self._sealed[address] for address in wanted & self._sealed.keys()},
        )
