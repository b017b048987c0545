"""Says which addresses a webhook may reach (decisions U22): none inside, unless the operator listed it. Pure.

A name is judged by every address it has, and the connection is made to an address that was judged, so that a name
cannot change its mind in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

from controlplane.config.values import WebhookAllow

MAX_URL_CHARS = 2_000
_PORTS = {"http": 80, "https": 443}

# RFC 6052 section 2.1. In 64:ff9b:1::/48 (RFC 8215) nobody can tell where the IPv4 address is: it is refused.
_NAT64: Final = ip_network("64:ff9b::/96")
# What IANA gives to networks. All else, as site-local, unique local and IPv4-compatible addresses, is no public one.
_UNICAST: Final = ip_network("2000::/3")
# IANA's registries of special-purpose addresses, also those that are reachable: no receiver of webhooks lives there.
_SPECIAL: Final = tuple(
    ip_network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "2001::/23",  # Teredo, benchmarks, ORCHID and others
        "2001:db8::/32",
        "2002::/16",  # 6to4: what leads to a public IPv4 address is judged as that
        "2620:4f:8000::/48",
        "3fff::/20",
        "168.63.129.16/32",  # in no registry: Azure's own services inside each of its machines
    )
)


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of the URL that a webhook is sent to."""

    scheme: str
    host: str
    port: int
    path: str


class TargetRefusedError(ValueError):
    """Webhooks may not be sent to this URL; the text says why."""


def target_of(url: str) -> Target:
    """The parts of a webhook's URL. Raises TargetRefusedError where it is no http(s) URL, or contains a user and
    password.
    """
    try:
        parts: SplitResult = urlsplit(url)
        port = parts.port
    except ValueError:
        raise TargetRefusedError("The URL cannot be read.") from None
    if parts.scheme not in _PORTS or not parts.hostname or len(url) > MAX_URL_CHARS:
        raise TargetRefusedError("The URL must start with https:// or http:// and name a host.")
    if parts.username is not None or any(character <= " " or character == "\x7f" for character in url):
        raise TargetRefusedError("The URL must not hold a user, a password or blanks.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path)


def allowed_address(target: Target, addresses: Sequence[str], allow: WebhookAllow) -> str:
    """The IP address to connect to, out of `addresses`, which are all that the target's host has. Raises
    TargetRefusedError when webhooks may not be sent to one of them, even if they may to others.
    """
    if not addresses:
        raise TargetRefusedError(f"The host '{target.host}' has no address.")
    if target.host.lower() not in allow.hosts:
        for address in addresses:
            _judge(target, ip_address(address.partition("%")[0]), allow)
    return addresses[0]


def _judge(target: Target, address: IPv4Address | IPv6Address, allow: WebhookAllow) -> None:
    """Raise TargetRefusedError unless webhooks may be sent to this address. `allow`: private addresses and hosts that
    are allowed.
    """
    behind = _embedded(address)
    if address.is_multicast or behind.is_multicast:
        raise TargetRefusedError(f"The host '{target.host}' is at {address}, which is a multicast address.")
    if any(each in network for network in allow.networks for each in (address, behind)):
        return
    if not _is_public(behind):
        through = f", which leads to {behind}" if behind != address else ""
        raise TargetRefusedError(
            f"The host '{target.host}' is at {address}{through}, which is not a public address; "
            "PARLEY_WEBHOOK_ALLOW can allow it."
        )


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address in an IPv6 address that stands for one (mapped, 6to4, NAT64), since traffic ends there; else the
    address itself.
    """
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address is in none of the blocks that IANA keeps for special purposes. Python's own `is_global` is
    not used, because its answer differs between releases.
    """
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    return not any(address in block for block in _SPECIAL)


def shown_target(url: str) -> str:
    """The URL without path and query, to be shown: these may hold a secret by which anybody could use it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…" if parts.scheme in _PORTS else url


def api_base(url: str) -> str:
    """The URL at which a service's API begins, without a slash at its end. Raises TargetRefusedError where it is no URL
    that paths can be added to.
    """
    target_of(url)
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise TargetRefusedError("The URL of an API must not hold a question mark or a hash sign.")
    return url.rstrip("/")
