"""The bytes of everything that streams may be sent, by address. Secrets are kept sealed and opened at send time
(decision 8).
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from controlplane.catalog.sealing import SealError, key_ring
from xdscore.snapshot import Content


class ContentMemory:
    """The contents of all loaded snapshots in memory, by address. Implements ports.Contents. One thread replaces the
    mapping and the event loop reads it, so no lock is needed.
    """

    def __init__(self) -> None:
        self._plain: Mapping[bytes, bytes] = MappingProxyType({})
        self._sealed: Mapping[bytes, bytes] = MappingProxyType({})
        self._held: frozenset[bytes] = frozenset()

    def any_bytes(self, content: Content) -> bytes:
        """The serialised Any of this content. Raises KeyError for content of no loaded snapshot, SealError for a secret
        that cannot be decrypted.
        """
        plain = self._plain.get(content.blob)
        if plain is not None:
            return plain
        return key_ring().open(self._sealed[content.blob], content.blob)

    def missing(self, addresses: Iterable[bytes]) -> frozenset[bytes]:
        """The given addresses whose bytes are not in memory."""
        return frozenset(address for address in addresses if address not in self._plain and address not in self._sealed)

    def sealed(self, addresses: Iterable[bytes]) -> frozenset[bytes]:
        """The given addresses whose bytes are kept encrypted (sealed), because they hold secrets."""
        return frozenset(address for address in addresses if address in self._sealed)

    def unreadable(self, addresses: Iterable[bytes]) -> dict[bytes, str]:
        """The given addresses whose bytes cannot be decrypted, each with the reason (P10)."""
        found: dict[bytes, str] = {}
        for address in addresses:
            try:
                if address in self._sealed:
                    key_ring().open(self._sealed[address], address)
            except SealError as error:
                found[address] = str(error)
        return found

    def stored(self, addresses: Iterable[bytes]) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        """The bytes kept for these addresses: the plain ones, then the encrypted (sealed) ones as they are."""
        wanted = set(addresses)
        return (
            {address: self._plain[address] for address in wanted & self._plain.keys()},
            {address: self._sealed[address] for address in wanted & self._sealed.keys()},
        )

    def add(self, plain: Mapping[bytes, bytes], sealed: Mapping[bytes, bytes]) -> None:
        """Add these contents by address: plain ones, and encrypted (sealed) ones. Those that are here stay."""
        self._plain = MappingProxyType({**self._plain, **plain})
        self._sealed = MappingProxyType({**self._sealed, **sealed})

    def hold(self, addresses: frozenset[bytes]) -> None:
        """Protect the contents at these addresses from `keep` until the next call of `hold`, which forgets them."""
        self._held = addresses

    def keep(self, addresses: frozenset[bytes]) -> None:
        """Drop every content whose address is neither in `addresses` nor protected by `hold`."""
        addresses |= self._held
        self._plain = MappingProxyType({key: data for key, data in self._plain.items() if key in addresses})
        self._sealed = MappingProxyType({key: data for key, data in self._sealed.items() if key in addresses})
