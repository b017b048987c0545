"""Who is accountable, and how much each may keep of a bounded place."""

import pytest

from xdscore.shares import ACCOUNTABLE_CHARS, accountable, beyond, fair_level, in_turns


@pytest.mark.parametrize(
    ("identity", "peer", "key"),
    [
        ("spiffe://demo/pay", "ipv4:192.0.2.1:40000", "id spiffe://demo/pay"),
        ("", "ipv4:192.0.2.1:40000", "at 192.0.2.1"),
        ("", "ipv4:192.0.2.1:40001", "at 192.0.2.1"),
        ("", "ipv6:%5B2001:db8::1%5D:40000", "at 2001:db8::/64"),
        ("", "unix:", "at unix"),
        ("", "", ""),
    ],
)
def test_accountable__verified_identity_else_address_without_its_port(identity: str, peer: str, key: str) -> None:
    assert accountable(identity=identity, peer=peer) == key


def test_accountable__identities_of_any_length_and_letters__are_told_apart_and_fit() -> None:
    keys = {accountable(identity="x" * 2_000 + end, peer="") for end in ("a", "b", "\n", "\ud800", "\x1b[31m")}

    assert len(keys) == 5
    assert all(len(key) <= ACCOUNTABLE_CHARS and key.isprintable() for key in keys)


def test_accountable__an_identity_that_reads_like_an_address__is_not_that_address() -> None:
    assert accountable(identity="ipv4:192.0.2.1", peer="") != accountable(identity="", peer="ipv4:192.0.2.1:1")


@pytest.mark.parametrize(
    ("held", "room", "level"),
    [
        ([], 10, 0),
        ([3, 4], 10, 4),
        ([1_000, 3, 4], 10, 3),
        ([1_000, 1], 10, 9),
        ([7, 7, 7], 10, 3),
        ([1] * 20, 10, 0),
        ([5], 0, 0),
    ],
)
def test_fair_level__what_each_may_keep__fits_and_only_the_noisiest_give_way(
    held: list[int], room: int, level: int
) -> None:
    assert fair_level(held, room) == level
    assert sum(min(each, level) for each in held) <= room


def test_beyond__more_than_there_is_room__takes_the_oldest_of_whoever_holds_most() -> None:
    held = [("a1", "a"), ("m1", "mad"), ("m2", "mad"), ("m3", "mad"), ("b1", "b")]

    assert beyond(held, 5) == []
    assert beyond(held, 4) == ["m1"]
    assert beyond(held, 3) == ["m1", "m2"]
    assert beyond(held, 2) == ["a1", "m1", "m2"]
    assert beyond(held, -1) == ["a1", "m1", "m2", "m3", "b1"]


def test_in_turns__of_one_who_holds_many__the_others_are_not_behind_all_of_them() -> None:
    held = [*((f"mad {number}", "mad") for number in range(3)), ("quiet", "quiet"), ("mad 3", "mad")]

    assert in_turns(held) == ["mad 0", "quiet", "mad 1", "mad 2", "mad 3"]
