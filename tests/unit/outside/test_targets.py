"""Where webhooks may go: nowhere inside, unless the operator says so (SSRF, decisions U22)."""

from ipaddress import ip_network

import pytest

from controlplane.config.values import WebhookAllow
from controlplane.outside.targets import Target, TargetRefusedError, allowed_address, shown_target, target_of

NOBODY = WebhookAllow()
HOOK = Target("https", "hooks.example", 443, "/")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hooks.example/a?b=c", Target("https", "hooks.example", 443, "/a?b=c")),
        ("http://hooks.example:8080", Target("http", "hooks.example", 8080, "/")),
        ("https://[2001:db8::1]/", Target("https", "2001:db8::1", 443, "/")),
    ],
)
def test_target__of_a_url__is_read(url: str, target: Target) -> None:
    assert target_of(url) == target


@pytest.mark.parametrize(
    "url",
    [
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "https://",
        "hooks.example",
        "https://user:pw@hooks.example/",
        "https://hooks.example/\r\nHost: other",
        "https://hooks.example:99999/",
        "https://[::1/",
        "gopher://127.0.0.1",
        "https://hooks.example/" + "x" * 2_000,
    ],
)
def test_target__that_is_none__is_refused(url: str) -> None:
    with pytest.raises(TargetRefusedError):
        target_of(url)


# Every block of IANA's registries of special-purpose addresses (RFC 6890), the multicast blocks, what is reserved or
# was given up, and addresses in IPv6 that lead to such in IPv4.
SPECIAL = {
    "0.0.0.0/8": ("0.0.0.0", "0.1.2.3"),  # noqa: S104 - refused
    "10.0.0.0/8": ("10.0.0.7",),
    "100.64.0.0/10": ("100.64.0.1", "100.100.100.200", "100.127.255.255"),
    "127.0.0.0/8": ("127.0.0.1", "127.8.9.1"),
    "169.254.0.0/16": ("169.254.169.254", "169.254.170.2"),
    "172.16.0.0/12": ("172.16.3.4", "172.31.255.255"),
    "192.0.0.0/24": ("192.0.0.8", "192.0.0.9", "192.0.0.170", "192.0.0.192"),
    "192.0.2.0/24": ("192.0.2.1",),
    "192.31.196.0/24": ("192.31.196.1",),
    "192.52.193.0/24": ("192.52.193.1",),
    "192.88.99.0/24": ("192.88.99.1",),
    "192.168.0.0/16": ("192.168.1.1",),
    "192.175.48.0/24": ("192.175.48.1",),
    "198.18.0.0/15": ("198.18.0.1", "198.19.255.255"),
    "198.51.100.0/24": ("198.51.100.1",),
    "203.0.113.0/24": ("203.0.113.1",),
    "224.0.0.0/4": ("224.0.0.1", "239.255.255.250"),
    "240.0.0.0/4": ("240.0.0.1", "255.255.255.255"),
    "a platform's services": ("168.63.129.16",),
    "::/128": ("::",),
    "::1/128": ("::1",),
    "::/96, IPv4-compatible": ("::127.0.0.1", "::10.0.0.1", "::93.184.216.34"),
    "::ffff:0:0/96, mapped": ("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
    "::ffff:0:0:0/96, translated": ("::ffff:0:10.0.0.1", "::ffff:0:93.184.216.34"),
    "64:ff9b::/96, NAT64": ("64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::224.0.0.1"),
    "64:ff9b:1::/48, NAT64": ("64:ff9b:1::10.0.0.1", "64:ff9b:1::93.184.216.34", "64:ff9b:1:a00:0:100::"),
    "100::/64": ("100::1",),
    "100:0:0:1::/64": ("100:0:0:1::1",),
    "2001::/23": ("2001:1::1", "2001:1::2", "2001:1::3", "2001:1ff::1"),
    "2001::/32, Teredo": ("2001::1", "2001:0:7f00:1::", "2001:0:4136:e378:8000:63bf:f5ff:fffe"),
    "2001:2::/48": ("2001:2::1",),
    "2001:3::/32": ("2001:3::1",),
    "2001:4:112::/48": ("2001:4:112::1",),
    "2001:10::/28": ("2001:10::1",),
    "2001:20::/28": ("2001:20::1",),
    "2001:30::/28": ("2001:30::1",),
    "2001:db8::/32": ("2001:db8::1",),
    "2002::/16, 6to4": ("2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::1", "2002:c058:6301::1"),
    "2620:4f:8000::/48": ("2620:4f:8000::1",),
    "3fff::/20": ("3fff::1",),
    "5f00::/16": ("5f00::1",),
    "fc00::/7": ("fd00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254"),
    "fe80::/10": ("fe80::1%eth0", "fe80::a9fe:a9fe"),
    "fec0::/10, site-local": ("fec0::1", "feff::1"),
    "ff00::/8": ("ff02::1", "ff0e::1"),
    "not given to anybody": ("4000::1", "1000::1", "e000::1"),
}


@pytest.mark.parametrize(
    "address", [pytest.param(each, id=f"{block} {each}") for block, some in SPECIAL.items() for each in some]
)
def test_address__that_is_not_public__is_refused_also_beside_a_public_one(address: str) -> None:
    for addresses in ([address], ["93.184.216.34", address]):
        with pytest.raises(TargetRefusedError):
            allowed_address(HOOK, addresses, NOBODY)


@pytest.mark.parametrize(
    "address",
    [
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "169.253.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "198.20.0.1",
        "223.255.255.255",
        "2001:200::1",
        "2606:4700::1",
        "2a00:1450::1",
        "::ffff:93.184.216.34",
        "64:ff9b::93.184.216.34",
        "2002:5db8:d822::1",
    ],
)
def test_address__beside_a_special_block_or_leading_to_a_public_one__is_where_to_connect(address: str) -> None:
    assert allowed_address(HOOK, [address], NOBODY) == address


def test_address__in_the_clothes_of_ipv6__says_where_it_leads() -> None:
    with pytest.raises(TargetRefusedError, match=r"is at 64:ff9b::a9fe:a9fe, which leads to 169\.254\.169\.254"):
        allowed_address(HOOK, ["64:ff9b::a9fe:a9fe"], NOBODY)


@pytest.mark.parametrize(
    ("network", "address"),
    [
        ("169.254.169.254/32", "169.254.169.254"),
        ("fd00:ec2::254/128", "fd00:ec2::254"),
        ("10.0.0.0/8", "64:ff9b::10.0.0.1"),
        ("10.0.0.0/8", "::ffff:10.0.0.1"),
        ("64:ff9b:1::/48", "64:ff9b:1::10.0.0.1"),
        ("fec0::/10", "fec0::1"),
    ],
)
def test_address__listed_itself_or_where_it_leads__is_allowed(network: str, address: str) -> None:
    assert allowed_address(HOOK, [address], WebhookAllow(networks=(ip_network(network),))) == address


def test_address__public__is_the_one_to_connect_to() -> None:
    assert allowed_address(HOOK, ["93.184.216.34", "2606:4700::1"], NOBODY) == "93.184.216.34"


def test_address__private_but_listed__is_allowed() -> None:
    networks = WebhookAllow(networks=(ip_network("10.1.0.0/16"),))

    assert allowed_address(HOOK, ["10.1.2.3"], networks) == "10.1.2.3"
    assert allowed_address(HOOK, ["10.9.9.9"], WebhookAllow(hosts=("hooks.example",))) == "10.9.9.9"
    with pytest.raises(TargetRefusedError):
        allowed_address(HOOK, ["10.2.2.3"], networks)


def test_shown_target__keeps_to_itself_what_lets_others_in() -> None:
    assert shown_target("https://hooks.example/services/T0/secret?x=1") == "https://hooks.example/…"
    assert shown_target("ops@example.org") == "ops@example.org"
