"""Where webhooks may go: nowhere inside, unless the operator says so (SSRF, resolutions U22)."""

from ipaddress import ip_network

import pytest

from controlplane.notify.targets import Target, TargetRefusedError, allowed_address, shown_target, target_of
from controlplane.values import WebhookAllow

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


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.1",
        "10.0.0.7",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - refused
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "ff02::1",
    ],
)
def test_address__that_is_not_public__is_refused_also_beside_a_public_one(address: str) -> None:
    for addresses in ([address], ["93.184.216.34", address]):
        with pytest.raises(TargetRefusedError):
            allowed_address(HOOK, addresses, NOBODY)


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
