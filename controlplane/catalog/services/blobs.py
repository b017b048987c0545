"""Writes blobs: bytes by address. Called inside the transaction of whatever refers to them."""

from collections.abc import Iterable, Mapping

from controlplane.catalog.choices import BlobKind
from controlplane.catalog.models import Blob

_BATCH = 300


def blobs_write(*, kind: BlobKind, blobs: Mapping[str, bytes]) -> None:
    """Insert the blobs that do not exist yet; the same bytes always have the same address, so a row that exists is the
    right one.
    """
    addresses = list(blobs)
    known: set[str] = set()
    for start in range(0, len(addresses), _BATCH):
        known.update(Blob.objects.filter(hash__in=addresses[start : start + _BATCH]).values_list("hash", flat=True))
    new = (
        Blob(hash=address, kind=kind.value, size=len(data), data=data)
        for address, data in blobs.items()
        if address not in known
    )
    Blob.objects.bulk_create(new, ignore_conflicts=True, batch_size=_BATCH)


def blobs_delete(*, addresses: Iterable[str]) -> None:
    """Delete blobs that nothing refers to any more. Called inside the transaction that made sure of that."""
    gone = sorted(addresses)
    for start in range(0, len(gone), _BATCH):
        Blob.objects.filter(hash__in=gone[start : start + _BATCH]).delete()
