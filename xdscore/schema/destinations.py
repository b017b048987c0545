"""Where an address or a name leads: to the proxy's own machine, or to what a cloud has beside each machine.

Both are reached by whoever may say where a proxy sends requests, and by nobody else on the network (threat 20). Every
spelling counts: resolvers take IPv4 in octal, hexadecimal and as one number, and IPv6 carries IPv4 in several ways.
Names are known by themselves; nothing is resolved here.
"""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import unquote

Address = IPv4Address | IPv6Address

# Link-local addresses (RFC 3927, RFC 4291 section 2.5.6), and where clouds keep metadata services outside of them.
_LINK_LOCAL: Final = (IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10"))
_METADATA: Final = (
    IPv6Network("fd00:ec2::/32"),  # AWS: instance metadata, credentials of pods
    IPv6Network("fd20:ce::254/128"),  # Google Cloud
    IPv4Network("168.63.129.16/32"),  # Azure's agent of the host
    IPv4Network("100.100.100.200/32"),  # Alibaba Cloud
)
# What the hosts files of Debian's and Fedora's families say beside localhost, and resolvers read.
_LOOPBACK_NAMES: Final = frozenset(
    {
        *("localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4"),
        *("localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback"),
    }
)
_METADATA_NAMES: Final = frozenset(
    {"metadata", "metadata.goog", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"}
)
# IPv6 whose last 32 bits are an address of IPv4: compatible and mapped (RFC 4291 section 2.5.5), translated (RFC 2765),
# and the well-known prefix of NAT64 (RFC 6052).
_ENDS_IN_IPV4: Final = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")  # RFC 3056
_NAT64_OF_A_NETWORK: Final = IPv6Network("64:ff9b:1::/48")  # RFC 8215: prefixes of any length of RFC 6052
_LOW_32: Final = 0xFFFF_FFFF
_PATH_SCHEMES: Final = ("unix", "unix-abstract")
_ADDRESS_SCHEMES: Final = ("dns", "ipv4", "ipv6")


def is_loopback(text: str) -> bool:
    """Whether an address or name means the machine itself, in any spelling: 127/8, ::1, the unspecified addresses
    (which connect to it), localhost and its other names in hosts files.
    """
    host = _host(text)
    if host in _LOOPBACK_NAMES or host.endswith(".localhost"):  # RFC 6761 section 6.3
        return True
    return any(address.is_loopback or address.is_unspecified for address in _addresses(host))


def is_link_local(text: str) -> bool:
    """Whether an address or name means a link-local address or a cloud's metadata service, in any spelling. Such a
    service answers everybody on the machine, often with credentials.
    """
    host = _host(text)
    return host in _METADATA_NAMES or any(
        address in network for address in _addresses(host) for network in (*_LINK_LOCAL, *_METADATA)
    )


def hosts_of_target(uri: str) -> tuple[str, ...] | None:
    """The hosts of a gRPC target: `scheme:authority/name`, `host:port`, addresses with commas between them; None for
    the path of a socket (gRPC Name Resolution). Query and fragment are ignored.
    """
    scheme, colon, rest = uri.partition(":")
    scheme = scheme.lower()
    if scheme in _PATH_SCHEMES:
        return None
    # Every target is parsed as a URI and decoded: what has no scheme is one behind `dns:///`.
    name = unquote(_path(rest)).rpartition("/")[2] if colon and scheme in _ADDRESS_SCHEMES else unquote(_path(uri))
    return tuple(_without_port(each) for each in name.split(","))


def _path(uri: str) -> str:
    """A URI without its query and fragment (RFC 3986 section 3)."""
    return uri.partition("#")[0].partition("?")[0]


def _without_port(name: str) -> str:
    if name.startswith("["):
        return name.partition("]")[0].lstrip("[")
    # With several colons it is an address of IPv6, and has no port.
    return name.partition(":")[0] if name.count(":") == 1 else name


def _host(text: str) -> str:
    return text.strip().rstrip(".").lower()


def _addresses(host: str) -> Iterator[Address]:
    """The IP addresses that a host is spelled as: itself, and the IPv4 address that an IPv6 address carries; none for a
    name.
    """
    address = _address(host)
    if address is None:
        return
    yield address
    if isinstance(address, IPv6Address):
        yield from map(IPv4Address, _carried(address))


def _carried(address: IPv6Address) -> Iterator[int]:
    bits = int(address)
    if any(address in network for network in _ENDS_IN_IPV4) and bits > 1:  # :: and ::1 are addresses of IPv6
        yield bits & _LOW_32
    elif address in _SIX_TO_FOUR:
        yield bits >> 80 & _LOW_32
    elif address in _NAT64_OF_A_NETWORK:
        # Which of these it is depends on the network's prefix; zero is what the others leave, and is no address there.
        # The bits 64 to 71 are left out of an address that lies across them (RFC 6052 section 2.2).
        befores = (16, 8, 0)
        split = [(bits >> 64 & (1 << n) - 1) << (32 - n) | bits >> (24 + n) & (1 << (32 - n)) - 1 for n in befores]
        yield from filter(None, (bits & _LOW_32, *split))


def _address(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host)) if host and " " not in host else None
    except (OSError, UnicodeError):
        return None
