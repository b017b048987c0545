"""Where the loader has the parts of snapshots from, and the check that they are what their addresses say (P10)."""

from collections.abc import Iterable
from typing import Protocol

from controlplane.catalog.choices import BlobKind
from controlplane.catalog.selectors import blobs_read
from xdscore.snapshot import content_hash


class SnapshotUnreadable(Exception):
    """A stored snapshot is incomplete, altered, or of a format this process does not read."""


class Blobs(Protocol):
    """A source of the blobs of snapshots, each found by its address (its hash). Blobs that the source does not have are
    left out; CacheRefused is raised when none can be had.
    """

    def parts(self, addresses: Iterable[bytes]) -> dict[bytes, bytes]:
        """The roots, access tables and chunks at these addresses, of which snapshots consist."""
        ...

    def contents(self, addresses: Iterable[bytes]) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        """The contents at these addresses: the plain ones, then the encrypted (sealed) ones as they are."""
        ...


class DatabaseBlobs:
    """Blobs from the rows of the database."""

    def parts(self, addresses: Iterable[bytes]) -> dict[bytes, bytes]:
        rows = blobs_read(addresses=(address.hex() for address in addresses))
        return {bytes.fromhex(text): data for text, _, data in rows}

    def contents(self, addresses: Iterable[bytes]) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        plain: dict[bytes, bytes] = {}
        sealed: dict[bytes, bytes] = {}
        for text, kind, data in blobs_read(addresses=(address.hex() for address in addresses)):
            (sealed if kind is BlobKind.SECRET else plain)[bytes.fromhex(text)] = data
        return plain, sealed


def read_parts(blobs: Blobs, addresses: set[bytes]) -> dict[bytes, bytes]:
    """All roots, access tables and chunks at these addresses, verified by their hashes. Raises SnapshotUnreadable when
    one is missing or wrong, and CacheRefused.
    """
    found = {address: data for address, data in blobs.parts(addresses).items() if content_hash(data) == address}
    lost = addresses - found.keys()
    if lost:
        raise SnapshotUnreadable(f"{len(lost)} parts are missing or altered, the first is {min(lost).hex()}")
    return found


def read_contents(blobs: Blobs, addresses: frozenset[bytes]) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """All contents at these addresses: plain ones, verified by their hashes, and encrypted (sealed) ones, which are
    verified when they are opened. Raises SnapshotUnreadable when one is missing or wrong, and CacheRefused.
    """
    found, sealed = blobs.contents(addresses)
    plain = {address: data for address, data in found.items() if content_hash(data) == address}
    lost = addresses - plain.keys() - sealed.keys()
    if lost:
        raise SnapshotUnreadable(f"{len(lost)} contents are missing or altered, the first is {min(lost).hex()}")
    return plain, sealed
