"""The folder with the last good snapshots, written so that a crash leaves the old or the new (law 4, reliability P8).

`directory` is what was served, every other file is a part of it (disk_format.py). Parts are written first, each by a
draft of its own that is synced and renamed; then the directory in the same way; then what nothing refers to goes.

Several processes may share a folder: parts of one address say the same, drafts have unique names, and a lock stands
around the moment in which the directory changes and files are removed.
"""

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from adsserver.store.disk_format import (
    CacheRefused,
    Keys,
    Part,
    SavedDirectory,
    decode_directory,
    decode_part,
    encode_directory,
    encode_part,
)
from xdscore.snapshot import HASH_BYTES

_DIRECTORY = "directory"
_LOCK = "lock"
_DRAFT = ".draft"

# Far above what we write; a file beyond is not ours. The largest part: 100,000 resources in 256 chunks, 1 MiB each.
_MAX_DIRECTORY_BYTES = 64 * 1024 * 1024
_MAX_PART_BYTES = 1024 * 1024 * 1024
# What nothing refers to may be another process's work that is not finished: it gets this long.
_UNFINISHED_S = 600.0


@dataclass(frozen=True, slots=True)
class System:
    """The two system calls that make a written file outlast a crash; tests let them fail."""

    fsync: Callable[[int], None] = os.fsync
    replace: Callable[[Path, Path], object] = os.replace


class DiskCache:
    """The folder in which the last good snapshots are kept for a start without database. Used by one thread; other
    processes may use the folder at the same time.
    """

    def __init__(self, folder: Path, keys: Keys, system: System | None = None) -> None:
        self._folder = folder
        self._keys = keys
        self._system = system or System()
        # Parts that this process wrote, or compared with what it would have written.
        self._known: set[str] = set()

    def directory_bytes(self) -> bytes:
        """The bytes of the file that says what was served, unverified. Raises CacheRefused; FileNotFoundError when
        nothing was saved yet.
        """
        return _read(self._folder / _DIRECTORY, _MAX_DIRECTORY_BYTES)

    def part(self, address: bytes) -> Part:
        """The verified part (a blob with its contents) that has this address. Raises CacheRefused."""
        try:
            data = _read(self._folder / address.hex(), _MAX_PART_BYTES)
        except FileNotFoundError as error:
            raise CacheRefused(f"{address.hex()} is missing") from error
        return decode_part(data, address, self._keys)

    def save(
        self, directory: SavedDirectory, parts: Mapping[bytes, Callable[[], Part]], *, go_on: Callable[[], bool]
    ) -> bool:
        """Make the folder hold this directory and the parts that its snapshots consist of. Raises OSError.

        Returns False when it must be called again: `go_on`, asked between files, returned False, or another process was
        writing. A directory with a later epoch, saved by another process, is not replaced (reliability P5).
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        wanted = {address.hex(): part for address, part in parts.items()}
        for name in wanted.keys() - self._known:
            self._put(name, encode_part(wanted[name]()))
            if not go_on():
                return False
        with self._locked() as alone:
            if not alone:
                return False
            there = {each.name for each in self._folder.iterdir()}
            if not wanted.keys() <= there:
                # Another process found them unneeded, before it could know of this directory.
                self._known &= there
                return False
            if not self._stays(directory):
                self._sync_folder()
                self._write(_DIRECTORY, encode_directory(directory, self._keys))
                self._sync_folder()
                self._remove(there - wanted.keys())
        self._known &= wanted.keys()
        return True

    def _put(self, name: str, data: bytes) -> None:
        """Write a part unless the same one is there; a file with other bytes (altered, or encrypted anew) is
        replaced.
        """
        try:
            same = _read(self._folder / name, _MAX_PART_BYTES) == data
        except (CacheRefused, FileNotFoundError):
            same = False
        if not same:
            self._write(name, data)
        self._known.add(name)

    def _stays(self, directory: SavedDirectory) -> bool:
        """Whether the directory on disk need not be replaced: it is equal and signed with today's key, or has a later
        epoch.
        """
        try:
            data = self.directory_bytes()
            saved = decode_directory(data, self._keys)
        except (CacheRefused, FileNotFoundError):
            return False
        ahead = any(
            saved.snapshots[key].lineage == ours.lineage and saved.snapshots[key].epoch > ours.epoch
            for key, ours in directory.snapshots.items()
            if key in saved.snapshots
        )
        return ahead or (saved == directory and encode_directory(saved, self._keys) == data)

    def _write(self, name: str, data: bytes) -> None:
        """Write a file by renaming a finished draft, so that a reader, and the disk after a crash, has either the old
        file or the new one.
        """
        draft = self._folder / f".{name}.{secrets.token_hex(8)}{_DRAFT}"
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as stream:
                stream.write(data)
                stream.flush()
                self._system.fsync(stream.fileno())
            self._system.replace(draft, self._folder / name)
        except Exception:
            with suppress(OSError):
                draft.unlink()
            raise

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._system.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _remove(self, unneeded: set[str]) -> None:
        """Remove the files that this process replaced, and parts and drafts that are too old to be another process's
        unfinished work.
        """
        for name in unneeded:
            with suppress(OSError):
                if name in self._known or (_is_ours(name) and self._is_old(name)):
                    (self._folder / name).unlink()

    def _is_old(self, name: str) -> bool:
        return time.time() - (self._folder / name).lstat().st_mtime > _UNFINISHED_S

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """A context in which no other process writes the directory or removes files. Yields False, and protects
        nothing, when another process is in it.
        """
        descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)


def _is_ours(name: str) -> bool:
    """Whether a file of this name is a part or a draft; files of other names are never removed."""
    part = len(name) == 2 * HASH_BYTES and set(name) <= set("0123456789abcdef")
    return part or (name.startswith(".") and name.endswith(_DRAFT))


def _read(file: Path, longest: int) -> bytes:
    """The bytes of a regular file that this user owns and that has at most `longest` bytes. Raises CacheRefused,
    FileNotFoundError.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > longest:
                raise CacheRefused(f"{file.name} is no file of ours, or larger than {longest} bytes")
            return stream.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CacheRefused(f"{file.name} cannot be read: {error.strerror}") from error
