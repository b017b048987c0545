"""Writes blobs: bytes by address. Called inside the transaction of whatever refers to them."""

from collections.abc import Iterable, Mapping

from django.db.models import Exists, ManyToOneRel, Model, OuterRef, QuerySet

from controlplane.catalog.choices import BlobKind
from controlplane.catalog.models import Blob

_BATCH = 300


def blobs_write(*, kind: BlobKind, blobs: Mapping[str, bytes]) -> None:
    """Store bytes under their addresses, where no blob has the address yet; equal bytes have equal addresses, so a
    stored one never needs to be replaced.
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
    """Delete the blobs with these addresses. The caller made sure, in the same transaction, that nothing refers to
    them.
    """
    gone = sorted(addresses)
    for start in range(0, len(gone), _BATCH):
        Blob.objects.filter(hash__in=gone[start : start + _BATCH]).delete()


def blobs_prune(*, addresses: Iterable[str]) -> None:
    """Delete those of the blobs with these addresses that no row of any table refers to. The caller holds the locks of
    all environments (`environments_publish_lock`): a write might find a content stored already, and refer to it.
    """
    wanted = sorted(set(addresses))
    referring = [
        (each.related_model, each.field.name)
        for each in Blob._meta.get_fields(include_hidden=True)  # noqa: SLF001 - Django documents it
        if isinstance(each, ManyToOneRel)
    ]
    for start in range(0, len(wanted), _BATCH):
        rows = Blob.objects.filter(hash__in=wanted[start : start + _BATCH])
        for model, field in referring:
            users: QuerySet[Model] = QuerySet(model).filter(**{field: OuterRef("pk")})
            rows = rows.exclude(Exists(users))
        blobs_delete(addresses=list(rows.values_list("hash", flat=True)))
