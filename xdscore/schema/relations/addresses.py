"""Addresses of sockets, where nothing resolves a name. Pure."""

from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address
from typing import Final

from xdscore.schema.codes import EXTENSION_UNKNOWN
from xdscore.schema.positions import Path
from xdscore.schema.relations.said import Said, together
from xdscore.schema.walk import AnyMessage

_IP_RESOLVER: Final = "envoy.ip"


def must_be_ip(address: AnyMessage, place: Path) -> Iterator[Said]:
    """The violation that a core.v3.Address at `place` has a name where only an IP address is of use."""
    if address.WhichOneof("address") == "socket_address":
        yield from socket_must_be_ip(address.socket_address, (*place, "socket_address"))


def socket_must_be_ip(socket: AnyMessage, place: Path) -> Iterator[Said]:
    """The violation that a core.v3.SocketAddress at `place` has a name, or the name of a port, and no resolver of its
    own for it; or that its resolver is one that Envoy does not bring along.
    """
    if socket.resolver_name not in ("", _IP_RESOLVER):
        yield Said((*place, "resolver_name"), EXTENSION_UNKNOWN, {"given": socket.resolver_name})
        return
    if ip_of(socket.address) is None:
        yield together((*place, "address"), "must be an IP address here; nothing resolves a name")
    if socket.WhichOneof("port_specifier") == "named_port":
        yield together((*place, "named_port"), "is of no use here, where nothing resolves a name; give 'port_value'")


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
