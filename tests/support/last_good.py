"""Directories and parts for tests of the cache on disk, and a disk that can fail or lose what was not synced."""

import errno
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from adsserver.store.disk import DiskCache, System
from adsserver.store.disk_format import Keys, Part, SavedDirectory, SavedSnapshot
from controlplane.catalog.sealing import KeyRing
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.snapshot import content_hash

KEYS = KeyRing((bytes(range(32)),))
SECRET = b"canary: hunter2hunter2"
SECRET_ADDRESS = b"s" * 16


class Saved:
    """A directory at an epoch with what it leads to: two parts of its own, and one that every epoch has."""

    def __init__(self, epoch: int, *, lineage: str = "first", keys: KeyRing = KEYS) -> None:
        resource = b"resource of epoch %d" % epoch
        root, access = b"root of %d" % epoch, b"access"
        chunk = Part(b"chunk of %d" % epoch, {content_hash(resource): resource}, {SECRET_ADDRESS: _seal(keys)})
        self.parts = {content_hash(part.blob): part for part in (Part(root), Part(access), chunk)}
        at = SavedSnapshot(lineage, epoch, content_hash(root).hex(), content_hash(access).hex(), "mac")
        choice = EnvironmentChoice("shop", (Selector(node_id="shop-*", metadata={"stage": "é"}),))
        self.directory = SavedDirectory((choice, EnvironmentChoice("default", ())), {"shop": at}, saved_at=1.5)

    def save(self, cache: DiskCache, *, go_on: Callable[[], bool] = lambda: True) -> bool:
        return cache.save(self.directory, makers(self.parts), go_on=go_on)


def makers(parts: Mapping[bytes, Part]) -> dict[bytes, Callable[[], Part]]:
    """For each address a function that makes its part, as `DiskCache.save` takes them."""
    return {address: partial(lambda part: part, part) for address, part in parts.items()}


_SEALED: dict[KeyRing, bytes] = {}


def _seal(keys: KeyRing) -> bytes:
    # Once: each sealing has another nonce, and equal parts must be equal bytes here.
    return _SEALED.setdefault(keys, keys.seal(SECRET, SECRET_ADDRESS))


class Crash(BaseException):
    """Raised where the machine is to stop, so that nobody cleans up."""


class Disk:
    """A disk that counts the steps that durability rests on, and fails at one of them."""

    def __init__(self, folder: Path, *, fails_at: int = 0, crash: bool = False) -> None:
        self.steps = 0
        self._folder = folder
        self._fails_at = fails_at
        self._crash = crash
        self._synced: set[tuple[int, int]] = set()
        self._renamed: dict[str, bytes | None] = {}

    def cache(self, keys: Keys = KEYS) -> DiskCache:
        return DiskCache(self._folder, keys, System(fsync=self._fsync, replace=self._replace))

    def lose(self, names: Callable[[str], bool]) -> None:
        """Do what a crash does: cut what was not synced, and undo the renames of these names that no sync followed."""
        for name, before in self._renamed.items():
            if names(name):
                (self._folder / name).unlink()
                if before is not None:
                    (self._folder / name).write_bytes(before)
                    self._synced.add(_identity((self._folder / name).stat()))
        for file in self._folder.iterdir():
            if _identity(file.stat()) not in self._synced:
                os.truncate(file, file.stat().st_size // 2)

    def _fsync(self, descriptor: int) -> None:
        self._step()
        status = os.fstat(descriptor)
        self._synced.add(_identity(status))
        if os.path.samestat(status, self._folder.stat()):
            self._renamed.clear()

    def _replace(self, draft: Path, target: Path) -> None:
        self._step()
        before = target.read_bytes() if target.exists() else None
        draft.replace(target)
        self._renamed.setdefault(target.name, before)

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self._fails_at:
            raise Crash if self._crash else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _identity(status: os.stat_result) -> tuple[int, int]:
    """The identity of a file as it was written: a rename keeps it, a later file of the same number differs."""
    return status.st_ino, status.st_mtime_ns


def altered(data: bytes, position: int) -> bytes:
    """The bytes with one bit flipped, in the byte at this position."""
    changed = bytearray(data)
    changed[position] ^= 1
    return bytes(changed)
