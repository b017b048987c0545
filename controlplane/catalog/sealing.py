"""Keys outside the database: seals secrets at rest and signs snapshots (decisions A8, D18,
D19). The first key of `PARLEY_ENCRYPTION_KEYS` encrypts, all of them decrypt. What must outlive them is in `lasting`.
"""

import os
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from hmac import compare_digest

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from controlplane.config import home

KEY_BYTES = 32
_FORMAT = b"\x01"
_KEY_ID_BYTES = 8
MARK_BYTES = len(_FORMAT) + _KEY_ID_BYTES  # the beginning of sealed bytes that says by which key
MARK_CHARS = 2 * _KEY_ID_BYTES  # the same of a MAC
_NONCE_BYTES = 12  # NIST SP 800-38D: 96 bits, random
_HEADER_BYTES = len(_FORMAT) + _KEY_ID_BYTES + _NONCE_BYTES


class SealError(ValueError):
    """Encrypted bytes cannot be opened: they are under a key that this process does not have, belong to another
    address, or were altered.
    """


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The encryption keys, newest first; at least one, each 32 bytes. Its repr leaves the keys out."""

    keys: tuple[bytes, ...]

    def __repr__(self) -> str:
        """A text without the keys: only how many there are."""
        return f"KeyRing({len(self.keys)} keys)"

    @property
    def marks(self) -> tuple[str, ...]:
        """The ids of the keys, newest first. An id stands in front of what its key encrypted or signed, and does not
        tell the key.
        """
        return tuple(_key_id(key).hex() for key in self.keys)

    def oldest(self, purpose: bytes) -> bytes:
        """A key for this purpose, derived from the oldest key: adding newer keys does not change it."""
        return _derive(self.keys[-1], purpose)

    def seal(self, plaintext: bytes, address: bytes) -> bytes:
        """Encrypt `plaintext` by AES-256-GCM under the first key. The result opens only together with the same
        `address`, so that nobody can swap rows of the database.
        """
        key = self.keys[0]
        nonce = os.urandom(_NONCE_BYTES)
        return _FORMAT + _key_id(key) + nonce + AESGCM(_derive(key, b"seal")).encrypt(nonce, plaintext, address)

    def open(self, sealed: bytes, address: bytes) -> bytes:
        """Decrypt bytes that `seal` made for this address. Raises SealError when no key of the ring opens them."""
        key_id, nonce = sealed[1 : 1 + _KEY_ID_BYTES], sealed[1 + _KEY_ID_BYTES : _HEADER_BYTES]
        if sealed[:1] != _FORMAT:
            raise SealError("unknown format of sealed bytes")
        for key in self.keys:
            if compare_digest(_key_id(key), key_id):
                try:
                    return AESGCM(_derive(key, b"seal")).decrypt(nonce, sealed[_HEADER_BYTES:], address)
                except InvalidTag as error:
                    raise SealError("sealed bytes were altered or belong to another resource") from error
        raise SealError(f"sealed under key {key_id.hex()}, which PARLEY_ENCRYPTION_KEYS does not hold")

    def is_current(self, sealed: bytes) -> bool:
        """Whether these bytes are encrypted under the first key, by the id in front of them."""
        return sealed[1 : 1 + _KEY_ID_BYTES] == _key_id(self.keys[0])

    def may_open(self, sealed: bytes) -> bool:
        """Whether the ring has the key whose id stands in front of these bytes; their first MARK_BYTES are enough to
        tell.
        """
        return sealed[1 : 1 + _KEY_ID_BYTES] in {_key_id(key) for key in self.keys}

    def may_verify(self, mac: str) -> bool:
        """Whether the ring has the key whose id stands in front of this MAC; its first MARK_CHARS are enough to
        tell.
        """
        return mac[:MARK_CHARS] in {_key_id(key).hex() for key in self.keys}

    def sign(self, data: bytes) -> str:
        """A MAC of `data` under the first key, with the id of the key in front."""
        return _mac(self.keys[0], data)

    def signed_by_current(self, mac: str) -> bool:
        """Whether this MAC was made under the first key, by the id in front of it; the MAC itself is not checked."""
        return mac.partition(":")[0] == _key_id(self.keys[0]).hex()

    def verifies(self, data: bytes, mac: str) -> bool:
        """Whether `mac` is the MAC of `data` under any key of the ring."""
        return any(compare_digest(_mac(key, data), mac) for key in self.keys)


@cache
def key_ring() -> KeyRing:
    """The encryption keys of this installation. Raises HomeError when there are none."""
    return KeyRing(home.encryption_keys(settings.PARLEY))


def _mac(key: bytes, data: bytes) -> str:
    return f"{_key_id(key).hex()}:{blake2b(data, digest_size=32, key=_derive(key, b'sign')).hexdigest()}"


def _key_id(key: bytes) -> bytes:
    return blake2b(key, digest_size=_KEY_ID_BYTES, person=b"parley-key-id").digest()


def _derive(key: bytes, purpose: bytes) -> bytes:
    return blake2b(purpose, digest_size=KEY_BYTES, key=key, person=b"parley-derive").digest()
