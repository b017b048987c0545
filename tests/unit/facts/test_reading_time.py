"""Texts about secrets are read for a bounded time, and whoever makes it long takes it from nobody who is verified."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from adsserver.store.facts import FactBuffer
from controlplane.clients.facts import FactBatch
from controlplane.clients.foreign_text import NOT_SHOWN
from tests.support.facts import content, rejected, respond, stream
from tests.support.manifests import parsed, tls_secret
from xdscore.limits import Limits
from xdscore.redaction import REDACTED
from xdscore.resource_types import SECRET
from xdscore.snapshot import Content

KEY = "a key 7f3a91"
OPENED = parsed(tls_secret("pay", KEY)).any_bytes
LOOK_S = 0.1


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class LongSecrets:
    """Contents that all hold secrets, each of which takes long to look at."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def missing(self, addresses: Iterable[bytes]) -> frozenset[bytes]:  # noqa: ARG002 - as ContentMemory has it
        return frozenset()

    def sealed(self, addresses: Iterable[bytes]) -> frozenset[bytes]:
        return frozenset(addresses)

    def any_bytes(self, _: Content) -> bytes:
        self._clock.now += LOOK_S
        return OPENED


class Ground:
    """A buffer of which each batch that is written takes a tenth of a second."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.batches: list[FactBatch] = []
        contents = LongSecrets(self.clock)
        self.buffer = FactBuffer(write=self.batches.append, clock=self.clock, limits=Limits(), contents=contents)
        self._streams = 0

    def refuse(self, *, times: int = 1, identity: str = "", address: str = "192.0.2.1") -> None:
        """One more stream says something about so many responses that nobody else was sent."""
        self._streams += 1
        opened = replace(stream(self._streams, identity=identity), peer=f"ipv4:{address}:40000")
        self.buffer.opened(opened)
        for number in range(times):
            sent = respond(content(f"{self._streams} {number}"), kind=SECRET)
            self.buffer.sent(opened, sent)
            self.buffer.learnt(opened, rejected(sent, f"{number}: bad {KEY}"))

    def write(self) -> float:
        """Write what there is; for how long texts were read."""
        before = self.clock.now
        self.buffer._take()
        took = self.clock.now - before
        self.buffer._flush()
        self.clock.now += 0.1
        return took

    def read_of(self, accountable: str) -> int:
        """How many texts of one were read: the rest is withheld."""
        texts = [each.text for batch in self.batches for each in batch.nacks if each.accountable == accountable]
        assert all(text == NOT_SHOWN or REDACTED in text for text in texts)
        return sum(text != NOT_SHOWN for text in texts)


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_reading__many_addresses_with_long_secrets__ends_in_time_and_identities_are_still_heard(ground: Ground) -> None:
    for number in range(100):
        ground.refuse(times=16, address=f"192.0.2.{number}")
    ground.refuse(identity="spiffe://demo/pay")

    took = ground.write()

    assert took <= 3.0
    assert ground.read_of("id spiffe://demo/pay") == 1


def test_reading__one_identity_goes_on_for_minutes__takes_a_part_of_the_time_and_nothing_from_others(
    ground: Ground,
) -> None:
    took, began = 0.0, ground.clock.now
    for turn in range(300):
        ground.refuse(times=16, identity="spiffe://demo/mad")
        if turn % 30 == 29:
            ground.refuse(identity="spiffe://demo/pay")
        took += ground.write()

    assert took / (ground.clock.now - began) < 0.2
    assert ground.read_of("id spiffe://demo/pay") == 10
    assert ground.read_of("id spiffe://demo/mad") > 10


def test_reading__after_a_pause__the_same_is_heard_again(ground: Ground) -> None:
    ground.refuse(times=16, identity="spiffe://demo/pay")
    ground.write()
    before = ground.read_of("id spiffe://demo/pay")
    ground.clock.now += 60

    ground.refuse(identity="spiffe://demo/pay")
    ground.write()

    assert ground.read_of("id spiffe://demo/pay") == before + 1
