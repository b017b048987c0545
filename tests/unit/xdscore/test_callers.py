"""Callers are told apart by what was verified of them, else by their address, and by nothing else."""

import pytest

from xdscore.callers import CallerKey, caller_key, network_of


@pytest.mark.parametrize(
    ("identity", "peer", "key"),
    [
        ("spiffe://td/pay", "ipv4:192.0.2.1:4711", CallerKey("spiffe://td/pay")),
        ("", "ipv4:192.0.2.1:4711", CallerKey(address="192.0.2.1")),
        ("", "ipv6:%5B2001:db8::1%5D:4711", CallerKey(address="2001:db8::/64")),
        ("", "ipv6:%5B2001:db8::ffff:1%5D:1", CallerKey(address="2001:db8::/64")),
        ("", "ipv6:%5Bfe80::1%25eth0%5D:1", CallerKey(address="fe80::/64")),
        ("", "ipv6:%5B::ffff:192.0.2.1%5D:4711", CallerKey(address="192.0.2.1")),
        ("", "ipv6:[2001:db8:1:2:ffff::1]:4711", CallerKey(address="2001:db8:1:2::/64")),
        ("", "unix:/run/parley.sock", CallerKey(address="unix")),
        ("", "unix:", CallerKey(address="unix")),
        ("", "nonsense", CallerKey(address="nonsense")),
        ("", "", CallerKey(address="")),
    ],
)
def test_caller_key__of_a_call__is_its_identity_or_its_address(identity: str, peer: str, key: CallerKey) -> None:
    assert caller_key(identity, peer) == key


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.0/24"),
        ("::ffff:192.0.2.7", "192.0.2.0/24"),
        ("2001:db8:1:2::9", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/48"),
        ("nonsense", ""),
    ],
)
def test_network__around_an_address__has_so_many_bits(address: str, network: str) -> None:
    assert network_of(address, ipv4_bits=24, ipv6_bits=48) == network
