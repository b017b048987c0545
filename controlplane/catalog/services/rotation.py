"""Moves secrets to the newest key while everything serves on (decisions A8, reliability (e) "secret
rotation").

A blob's address and its plaintext stay; only the ciphertext is replaced, a few rows a transaction. A row that somebody
else replaced meanwhile is left to the next look: whatever is sealed under the first key is done.
"""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import BinaryField, Count
from django.db.models.functions import Substr

from controlplane.catalog.choices import BlobKind
from controlplane.catalog.models import Blob
from controlplane.catalog.sealing import MARK_BYTES, SealError, key_ring

_BATCH = 100


@dataclass(frozen=True, slots=True)
class Resealed:
    """How many secrets were encrypted anew (`moved`), and the addresses of those that no key of this process opens
    (`lost`).
    """

    moved: int
    lost: tuple[str, ...]


def secrets_foreign() -> int:
    """The number of secrets that are encrypted under a key that is not configured, by the key's id in front of them.
    One query.
    """
    ring = key_ring()
    marks = Blob.objects.filter(kind=BlobKind.SECRET.value).annotate(
        mark=Substr("data", 1, MARK_BYTES, output_field=BinaryField())
    )
    counts = marks.order_by().values_list("mark").annotate(secrets=Count("pk"))
    return sum(number for mark, number in counts if not ring.may_open(bytes(mark)))


def secrets_reseal() -> Resealed:
    """Encrypt anew, under the first key, every secret that is under an older one."""
    ring = key_ring()
    moved, last = 0, ""
    lost: list[str] = []
    while True:
        rows = list(Blob.objects.filter(kind=BlobKind.SECRET.value, hash__gt=last).order_by("hash")[:_BATCH])
        if not rows:
            return Resealed(moved, tuple(lost))
        last = rows[-1].hash
        fresh: dict[str, tuple[bytes, bytes]] = {}
        for row in rows:
            sealed, address = bytes(row.data), bytes.fromhex(row.hash)
            if ring.is_current(sealed):
                continue
            try:
                fresh[row.hash] = sealed, ring.seal(ring.open(sealed, address), address)
            except SealError:
                lost.append(row.hash)
        with transaction.atomic():
            moved += sum(
                Blob.objects.filter(hash=address, data=before).update(data=after, size=len(after))
                for address, (before, after) in fresh.items()
            )
