"""What is read from disk is what was written, or refused (reliability P10, threat 19)."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsserver.ports import ClientToken
from adsserver.store.disk_format import (
    CacheRefused,
    Part,
    SavedDirectory,
    SavedSnapshot,
    decode_directory,
    decode_part,
    encode_directory,
    encode_part,
)
from controlplane.catalog.sealing import KeyRing
from tests.support.last_good import KEYS, SECRET, Saved, altered
from xdscore.environment_choice import EnvironmentChoice, Selector
from xdscore.snapshot import content_hash

FOREIGN = KeyRing((bytes(32),))
DIRECTORY = Saved(7).directory
DIRECTORY_BYTES = encode_directory(DIRECTORY, KEYS)
ADDRESS, PART = next((address, part) for address, part in Saved(7).parts.items() if part.sealed)
PART_BYTES = encode_part(PART)

texts = st.text(max_size=8)
globs = st.none() | texts
selectors = st.builds(
    Selector, identity=globs, node_id=globs, node_cluster=globs, metadata=st.dictionaries(texts, texts, max_size=2)
)
choices = st.builds(
    EnvironmentChoice, texts, st.lists(selectors, max_size=2).map(tuple), st.lists(texts, max_size=2).map(tuple)
)
tokens = st.builds(ClientToken, texts, texts, st.just(math.inf) | st.floats(0, 1e10))
snapshots = st.builds(SavedSnapshot, texts, st.integers(0, 2**63), texts, texts, texts)
directories = st.builds(
    SavedDirectory,
    st.lists(choices, max_size=3).map(tuple),
    st.dictionaries(texts, snapshots, max_size=3),
    st.dictionaries(texts, tokens, max_size=3),
    st.just(2.5),
)


@given(directory=directories)
def test_directory__written_and_read__is_the_same(directory: SavedDirectory) -> None:
    read = decode_directory(encode_directory(directory, KEYS), KEYS)

    assert read == directory
    assert read.saved_at == directory.saved_at


@given(
    blob=st.binary(max_size=50), contents=st.lists(st.binary(max_size=50), max_size=4), secret=st.binary(max_size=50)
)
def test_part__written_and_read__is_the_same(blob: bytes, contents: list[bytes], secret: bytes) -> None:
    sealed = {b"s" * 16: KEYS.seal(secret, b"s" * 16)}
    part = Part(blob, {content_hash(each): each for each in contents}, sealed)

    assert decode_part(encode_part(part), content_hash(blob), KEYS) == part


def test_part__with_a_secret__holds_ciphertext() -> None:
    assert SECRET not in PART_BYTES
    assert b"hunter2" not in PART_BYTES


def test_directory__one_bit_altered_anywhere__is_refused() -> None:
    for position in range(len(DIRECTORY_BYTES)):
        with pytest.raises(CacheRefused):
            decode_directory(altered(DIRECTORY_BYTES, position), KEYS)


def test_part__one_bit_altered_anywhere__is_refused() -> None:
    for position in range(len(PART_BYTES)):
        with pytest.raises(CacheRefused):
            decode_part(altered(PART_BYTES, position), ADDRESS, KEYS)


def test_directory__cut_off_anywhere__is_refused() -> None:
    for length in range(len(DIRECTORY_BYTES)):
        with pytest.raises(CacheRefused):
            decode_directory(DIRECTORY_BYTES[:length], KEYS)


def test_part__cut_off_anywhere__is_refused_or_visibly_lacks_contents() -> None:
    whole = []
    for length in range(len(PART_BYTES)):
        with suppress(CacheRefused):
            whole.append(decode_part(PART_BYTES[:length], ADDRESS, KEYS))

    # Cut exactly before the first or the second content: whoever needs it finds it missing (blobs.read_contents).
    assert [len(part.plain) + len(part.sealed) for part in whole] == [0, 1]
    assert all(part.blob == PART.blob for part in whole)


def test_directory__signed_under_a_foreign_key__is_refused() -> None:
    with pytest.raises(CacheRefused, match="signature"):
        decode_directory(encode_directory(DIRECTORY, FOREIGN), KEYS)


def test_part__sealed_under_a_foreign_key__is_refused() -> None:
    with pytest.raises(CacheRefused, match="foreign key"):
        decode_part(PART_BYTES, ADDRESS, FOREIGN)


def test_directory__of_a_later_format__is_refused_and_says_so() -> None:
    later = DIRECTORY_BYTES.replace(b"parley-directory 1 ", b"parley-directory 2 ")

    with pytest.raises(CacheRefused, match="format b'2'; this process reads 1"):
        decode_directory(later, KEYS)


def test_part__of_a_later_format__is_refused_and_says_so() -> None:
    later = PART_BYTES.replace(b"parley-part \x01", b"parley-part \x02")

    with pytest.raises(CacheRefused, match="format 2; this process reads 1"):
        decode_part(later, ADDRESS, KEYS)


def test_part__under_another_address__is_refused() -> None:
    with pytest.raises(CacheRefused):
        decode_part(PART_BYTES, content_hash(b"another"), KEYS)


def test_directory__a_snapshots_signature__cannot_stand_for_one() -> None:
    body = DIRECTORY_BYTES.partition(b"\n")[2]
    forged = b"parley-directory 1 %s\n%s" % (KEYS.sign(body).encode(), body)

    with pytest.raises(CacheRefused, match="signature"):
        decode_directory(forged, KEYS)
