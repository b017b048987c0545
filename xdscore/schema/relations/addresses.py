"""Addresses of sockets, where nothing resolves a name. Pure."""

from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address

from xdscore.schema.positions import Path
from xdscore.schema.relations.said import Said, together
from xdscore.schema.walk import AnyMessage


def must_be_ip(address: AnyMessage, place: Path) -> Iterator[Said]:
    """The violation that a core.v3.Address at `place` has a name where only an IP address is of use."""
    if address.WhichOneof("address") == "socket_address":
        yield from socket_must_be_ip(address.socket_address, (*place, "socket_address"))


def socket_must_be_ip(socket: AnyMessage, place: Path) -> Iterator[Said]:
    """The violation that a core.v3.SocketAddress at `place` has a name, and no resolver of its own for it."""
    if not socket.resolver_name and ip_of(socket.address) is None:
        yield together((*place, "address"), "must be an IP address here; nothing resolves a name")


def ip_of(text: str) -> object | None:
    """The IP address that a text is; None for any other text."""
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None


def may_be_ipv4_compatible(text: str) -> bool:
    """Whether a socket on this address can take IPv4, too: the unspecified address of IPv6, or one that carries an
    address of IPv4.
    """
    address = ip_of(text)
    return isinstance(address, IPv6Address) and (address.is_unspecified or address.ipv4_mapped is not None)
