"""Versions of rehearsed content are no version of any revision."""

from hypothesis import given
from hypothesis import strategies as st

from xdscore.rehearsed import is_rehearsed, rehearsed_version
from xdscore.snapshot import content_hash, content_version


@given(st.binary(max_size=50), st.uuids().map(str), st.uuids().map(str))
def test_version__rehearsed__is_told_from_every_other_and_is_the_rehearsals_own(
    data: bytes, one: str, two: str
) -> None:
    address = content_hash(data)

    version = rehearsed_version(one, address)

    assert is_rehearsed(version)
    assert not is_rehearsed(content_version(address))
    assert len(version) == len(content_version(address))
    assert rehearsed_version(one, address) == version
    assert (rehearsed_version(two, address) == version) is (one == two)


def test_version__no_content__is_not_rehearsed() -> None:
    assert not is_rehearsed("")
