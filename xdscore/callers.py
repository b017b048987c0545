"""Who calls, as every count against abuse tells callers apart: by what was verified, else by where they come from.

Nothing that a caller may choose (a node id, a user agent, a port) is part of it. One rule for streams, facts,
incidents, messages, sign-ins and pages. Pure.
"""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import unquote

# What one subscriber is given of IPv6 (RFC 6177): whoever has one address of it has them all.
OWN_IPV6_BITS = 64
_IPV4_BITS = 32
# A fleet comes from few addresses, again and again; reading one takes longer than all else that a call is counted by.
_REMEMBERED = 4_096


@dataclass(frozen=True, slots=True)
class CallerKey:
    """Whom a call counts against: the verified identity, else the address that the connection comes from. One of the
    two is empty.
    """

    identity: str = ""
    address: str = ""

    @property
    def words(self) -> str:
        """How texts of refusals call the caller: "identity" or "address"."""
        return "identity" if self.identity else "address"


def caller_key(identity: str, peer: str) -> CallerKey:
    """Whom a call counts against: `identity` if it is not empty, else the address in `peer`, which is spelled as gRPC
    does: `ipv4:192.0.2.1:4711`, `ipv6:%5B::1%5D:4711`, `unix:...`.

    IPv6 addresses of one /64 network are one caller; so are all peers without an address.
    """
    if identity:
        return CallerKey(identity=identity)
    family, _, rest = peer.partition(":")
    host = unquote(rest).rpartition(":")[0].removeprefix("[").removesuffix("]")
    return CallerKey(address=network_of(host) or family)


@lru_cache(maxsize=_REMEMBERED)
def network_of(address: str, *, ipv4_bits: int = _IPV4_BITS, ipv6_bits: int = OWN_IPV6_BITS) -> str:
    """The network around an address, with a prefix of `ipv4_bits` or `ipv6_bits`. An IPv4 address that is spelled in
    IPv6 is treated as IPv4. Empty when the text is no address.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    if found.version == 4 and ipv4_bits == _IPV4_BITS:
        return str(found)
    return str(ip_network((found, ipv4_bits if found.version == 4 else ipv6_bits), strict=False))
