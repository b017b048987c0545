"""What a resource wants to itself: the addresses of a listener, the key of a scope, the domains of a route.

Two resources with one claim cannot both work: Envoy refuses the second listener on an address ("has duplicate
address"), every scoped route of a response in which two have one key ("scope key conflict found"), and a route
configuration in which a domain stands twice. The builder compares the claims that are kept with each revision.
"""

from collections.abc import Iterator
from urllib.parse import quote

from xdscore.resource_types import LISTENER, ROUTE, SCOPED_ROUTE, VIRTUAL_HOST
from xdscore.schema.positions import Path
from xdscore.schema.walk import AnyMessage
from xdscore.xdstp import place_of


def claims_of(message: AnyMessage, name: str) -> tuple[str, ...]:
    """What no other resource may have at the same time as the resource `name`, such as an address or a domain: sorted,
    each a line of words that people understand. Most resources have none.

    Domains are claimed only where they can meet those of another resource: in a route configuration that takes virtual
    hosts on demand, and in those virtual hosts, which are named ROUTE/HOST (VHDS).
    """
    full_name = message.DESCRIPTOR.full_name
    if full_name == LISTENER.message:
        found = _addresses(message)
    elif full_name == SCOPED_ROUTE.message:
        found = _scope_keys(message, name)
    elif full_name == ROUTE.message and message.HasField("vhds"):
        found = (f"domain {domain} of route {name}" for _, domain in domains_of(message))
    elif full_name == VIRTUAL_HOST.message and "/" in name:
        route = name.rpartition("/")[0]
        found = (f"domain {domain.lower()} of route {route}" for domain in message.domains)
    else:
        return ()
    # A newline separates claims in the database.
    return tuple(sorted({" ".join(claim.split()) for claim in found}))


def domains_of(route: AnyMessage) -> Iterator[tuple[Path, str]]:
    """Every domain of a route configuration with its place, in lower case, as Envoy compares domains."""
    for number, host in enumerate(route.virtual_hosts):
        for index, domain in enumerate(host.domains):
            yield ("virtual_hosts", number, "domains", index), domain.lower()


def _scope_keys(scoped_route: AnyMessage, name: str) -> Iterator[str]:
    """The key of a scope, percent-encoded. Who asks for a collection has its members alone, so that each collection has
    keys of its own.
    """
    key = ", ".join(quote(fragment.string_key, safe="") for fragment in scoped_route.key.fragments)
    directory, context = place_of(name) or ("", "")
    yield f"scope key {key}" + (f" of {directory}*{context and '?' + context}" if directory else "")


def _addresses(listener: AnyMessage) -> Iterator[str]:
    """The addresses that a listener binds. Envoy binds none for an API listener, nor where `bind_to_port` is false, and
    port 0 is another port each time.
    """
    if listener.HasField("api_listener") or (listener.HasField("bind_to_port") and not listener.bind_to_port.value):
        return
    for address in (listener.address, *(each.address for each in listener.additional_addresses)):
        kind = address.WhichOneof("address")
        if kind == "pipe":
            yield f"pipe {address.pipe.path}"
        elif kind == "socket_address" and address.socket_address.port_value:
            socket = address.socket_address
            protocol = socket.Protocol.Name(socket.protocol).lower()
            namespace = f" in {socket.network_namespace_filepath}" if socket.network_namespace_filepath else ""
            yield f"address {protocol} {socket.address} port {socket.port_value}{namespace}"
