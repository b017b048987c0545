"""Says which addresses a webhook may reach (resolutions U22): none inside, unless the operator listed it. Pure.

A name is judged by every address it has, and the connection is made to an address that was judged, so that a name
cannot change its mind in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from controlplane.values import WebhookAllow

MAX_URL_CHARS = 2_000
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a webhook goes."""

    scheme: str
    host: str
    port: int
    path: str


class TargetRefusedError(ValueError):
    """The target may not be reached; says why."""


def target_of(url: str) -> Target:
    """The parts of a URL. Raises TargetRefusedError for what is no http(s) URL, or carries a user and password."""
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
    """The address to connect to. Raises TargetRefusedError when any address of the name is not for webhooks."""
    found = [_plain(ip_address(address.partition("%")[0])) for address in addresses]
    if not found:
        raise TargetRefusedError(f"The host '{target.host}' has no address.")
    if target.host.lower() not in allow.hosts:
        for address in found:
            if not address.is_global and not any(address in network for network in allow.networks):
                raise TargetRefusedError(
                    f"The host '{target.host}' is at {address}, which is not a public address; "
                    "PARLEY_WEBHOOK_ALLOW can allow it."
                )
            if address.is_multicast:
                raise TargetRefusedError(f"The host '{target.host}' is at {address}, which is a multicast address.")
    return str(found[0])


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """An IPv4 address that comes in the clothes of IPv6 is judged as what it is."""
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or address.sixtofour or address
    return address


def shown_target(url: str) -> str:
    """A URL as it may be read back: its path and query may be all that keeps others from using it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…" if parts.scheme in _PORTS else url
