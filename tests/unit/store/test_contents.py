"""Bytes of contents: kept as long as a snapshot has them, or a stream may be sent them again."""

from adsserver.store.contents import ContentMemory
from xdscore.snapshot import Content

ONE, TWO, THREE = b"1" * 16, b"2" * 16, b"3" * 16


def test_keep__held_for_a_stream__stays_until_it_is_held_no_more() -> None:
    contents = ContentMemory()
    contents.add({ONE: b"one", TWO: b"two"}, {THREE: b"sealed"})
    contents.hold(frozenset({TWO, THREE}))

    contents.keep(frozenset({ONE}))

    assert contents.missing([ONE, TWO, THREE]) == frozenset()
    assert contents.any_bytes(Content(TWO, "v2", 3)) == b"two"

    contents.hold(frozenset())
    contents.keep(frozenset({ONE}))

    assert contents.missing([ONE, TWO, THREE]) == {TWO, THREE}
