"""What must not change when the encryption keys do: the addresses of secrets, from which their versions on the wire are
made, and the hashes in `<kept:…>` (decisions C31, D18, U12).

Both are keyed, so that they tell nothing about what a value might be. Until the first rotation their keys are derived
from the oldest key of the ring; a rotation keeps them, sealed under the newest one, so that the oldest can go.
"""

from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b

import structlog
from django.db import IntegrityError, transaction

from controlplane.catalog.models import LastingKey
from controlplane.catalog.sealing import KEY_BYTES, KeyRing, SealError, key_ring
from xdscore.snapshot import HASH_BYTES

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_ADDRESS = b"lasting keys"
_ONLY = 1


@dataclass(frozen=True, slots=True)
class LastingKeys:
    """The two keys that stay the same when the encryption keys are rotated: `address` for addresses of secrets, `kept`
    for hashes that are stored. Their repr leaves them out.
    """

    address: bytes = field(repr=False)
    kept: bytes = field(repr=False)

    def secret_address(self, *, environment: str, word: str, name: str, plaintext: bytes) -> bytes:
        """The address of a secret of this environment, type (`word`) and name: a hash of the plaintext under a key, so
        that nobody can guess a value and compare, and equal secrets of two resources differ.
        """
        context = f"{environment}\0{word}\0{name}\0".encode()
        return blake2b(context + plaintext, digest_size=HASH_BYTES, key=self.address).digest()

    def webhook_secret(self, salt: str) -> bytes:
        """The secret with which rollouts of one environment sign what they ask webhooks. `salt`: of the environment."""
        context = b"rollout webhook\0" + salt.encode()
        return blake2b(context, digest_size=KEY_BYTES, key=self.kept).digest()

    def keyed_hash(self, data: bytes) -> str:
        """A short keyed hash by which operators tell secret values apart without reading them (decisions U12)."""
        return blake2b(data, digest_size=HASH_BYTES, key=self.kept).hexdigest()


def lasting_keys() -> LastingKeys:
    """The two keys of this installation that stay the same when the encryption keys are rotated. Raises HomeError when
    there are no encryption keys.
    """
    ring = key_ring()
    try:
        return _of(ring)
    except SealError as error:
        # Unchanged secrets become new revisions once; nothing else depends on it.
        log.error("lasting_keys.lost", reason=str(error))  # noqa: TRY400 - the trace says nothing more
        return _first(ring)


def lasting_keys_keep() -> bool:
    """Encrypt the two lasting keys anew under the first encryption key, and store them. False when no encryption key of
    this process opens the stored ones.
    """
    ring = key_ring()
    row = LastingKey.objects.filter(pk=_ONLY).first()
    if row is None:
        keys = _first(ring)
        try:
            with transaction.atomic():
                LastingKey.objects.create(pk=_ONLY, sealed=ring.seal(keys.address + keys.kept, _ADDRESS))
        except IntegrityError:
            # Somebody else does the same; whichever was first is kept.
            return lasting_keys_keep()
        return True
    before = bytes(row.sealed)
    if not ring.is_current(before):
        try:
            after = ring.seal(ring.open(before, _ADDRESS), _ADDRESS)
        except SealError:
            return False
        LastingKey.objects.filter(pk=_ONLY, sealed=before).update(sealed=after)
    return True


def lasting_keys_forget() -> None:
    """Drop the two lasting keys from this process's memory, so that the next use reads them from the database."""
    _of.cache_clear()


@cache
def _of(ring: KeyRing) -> LastingKeys:
    row = LastingKey.objects.filter(pk=_ONLY).first()
    if row is None:
        return _first(ring)
    opened = ring.open(bytes(row.sealed), _ADDRESS)
    return LastingKeys(opened[:KEY_BYTES], opened[KEY_BYTES:])


def _first(ring: KeyRing) -> LastingKeys:
    return LastingKeys(ring.oldest(b"address"), ring.oldest(b"kept"))
