"""Secrets at rest, their addresses, and signatures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.catalog.lasting import LastingKeys
from controlplane.catalog.sealing import KeyRing, SealError

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
ADDRESS = b"a" * 16


@given(plaintext=st.binary(max_size=200))
def test_seal__then_open__gives_the_plaintext_back_and_hides_it(plaintext: bytes) -> None:
    ring = KeyRing((OLD,))

    sealed = ring.seal(plaintext, ADDRESS)

    assert ring.open(sealed, ADDRESS) == plaintext
    assert len(plaintext) < 4 or plaintext not in sealed


def test_open__another_key_was_added_in_front__still_opens() -> None:
    sealed = KeyRing((OLD,)).seal(b"key", ADDRESS)

    assert KeyRing((NEW, OLD)).open(sealed, ADDRESS) == b"key"


@pytest.mark.parametrize("position", range(0, 40, 3))
def test_open__one_bit_flipped__is_refused(position: int) -> None:
    sealed = bytearray(KeyRing((OLD,)).seal(b"-----BEGIN KEY-----", ADDRESS))
    sealed[position] ^= 1

    with pytest.raises(SealError):
        KeyRing((OLD,)).open(bytes(sealed), ADDRESS)


def test_open__row_of_another_resource__is_refused() -> None:
    sealed = KeyRing((OLD,)).seal(b"key", ADDRESS)

    with pytest.raises(SealError, match="another resource"):
        KeyRing((OLD,)).open(sealed, b"b" * 16)


def test_open__key_not_configured__says_so() -> None:
    sealed = KeyRing((OLD,)).seal(b"key", ADDRESS)

    with pytest.raises(SealError, match="PARLEY_ENCRYPTION_KEYS"):
        KeyRing((NEW,)).open(sealed, ADDRESS)


def test_oldest__key_added_in_front__stays() -> None:
    assert KeyRing((OLD,)).oldest(b"address") == KeyRing((NEW, OLD)).oldest(b"address")
    assert KeyRing((OLD,)).oldest(b"address") != KeyRing((OLD,)).oldest(b"kept")
    assert KeyRing((OLD,)).oldest(b"address") != KeyRing((NEW,)).oldest(b"address")


def test_secret_address__of_another_place_or_key__is_another() -> None:
    def address(key: bytes, **changed: str) -> bytes:
        return LastingKeys(key, b"").secret_address(
            **{"environment": "prod", "word": "secret", "name": "a", **changed}, plaintext=b"password"
        )

    assert address(OLD) == address(OLD)
    assert len({address(OLD), address(NEW), address(OLD, name="b"), address(OLD, environment="test")}) == 4
    assert "password" not in repr(LastingKeys(b"password", b"password"))


def test_sign__altered_data_or_foreign_key__does_not_verify() -> None:
    mac = KeyRing((OLD,)).sign(b"epoch 7")

    assert KeyRing((NEW, OLD)).verifies(b"epoch 7", mac)
    assert not KeyRing((NEW, OLD)).verifies(b"epoch 8", mac)
    assert not KeyRing((NEW,)).verifies(b"epoch 7", mac)


def test_key_ring__printed__shows_no_key() -> None:
    assert repr(KeyRing((OLD, NEW))) == "KeyRing(2 keys)"
