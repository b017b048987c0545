"""What proxies take and can never use: routes that never match, domains that fit nothing, filter chains that are never
chosen. Warnings, and sound: what is said here holds for every request and connection. Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.codes import CHAIN_UNUSED, DOMAIN_UNUSED, PATH_UNUSED, SHADOWED
from xdscore.schema.positions import Path
from xdscore.schema.relations.said import Rule, Said
from xdscore.schema.shadowing import shadowed_in
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage

NEVER_USED: Final = frozenset({SHADOWED, PATH_UNUSED, DOMAIN_UNUSED, CHAIN_UNUSED})
_ROUTE: Final = "envoy.config.route.v3."
_LISTENER_FILTERS: Final = "envoy.extensions.filters.listener."
# Filters of listeners that say nothing of TLS, nor of the address that a connection was meant for.
_PLAIN: Final = frozenset({_LISTENER_FILTERS + "http_inspector.v3.HttpInspector"})
_TLS_INSPECTOR: Final = _LISTENER_FILTERS + "tls_inspector.v3.TlsInspector"


def never_used_in(message: AnyMessage, path: Path) -> Iterator[Said]:
    """What of `message`, which is found at `path` in a resource, can never be used, with places in that resource. The
    messages inside it are not looked at.
    """
    rule = _RULES.get(message.DESCRIPTOR.full_name)
    if rule is not None:
        yield from (said.below(path) for said in rule(message))


def _host(host: AnyMessage) -> Iterator[Said]:
    if host.HasField("matcher"):  # stands in place of routes
        return
    for index, first in shadowed_in(host):
        values = {"route": index, "before": first, "host": host.name}
        yield Said(("routes", index, "match"), SHADOWED, values, ("routes", first, "match"))


def _match(match: AnyMessage) -> Iterator[Said]:
    kind = match.WhichOneof("path_specifier")
    if kind not in {"prefix", "path", "path_separated_prefix"}:
        return
    text: str = getattr(match, kind)
    if "?" in text or "#" in text:
        yield Said((kind,), PATH_UNUSED, {"problem": "has a '?' or '#', and a path is compared without its query"})
    elif text and not text.startswith(("/", "*")):
        yield Said((kind,), PATH_UNUSED, {"problem": "does not begin with a slash, as every path does"})


def _configuration(configuration: AnyMessage) -> Iterator[Said]:
    if not configuration.ignore_port_in_host_matching or configuration.vhost_header:
        return
    for number, host in enumerate(configuration.virtual_hosts):
        for index, domain in enumerate(host.domains):
            name, _, port = domain.rpartition(":")
            if name and (":" not in name or name.endswith("]")) and port.isascii() and port.isdecimal():
                place: Path = ("virtual_hosts", number, "domains", index)
                yield Said(place, DOMAIN_UNUSED, {"domain": domain})


def _listener(listener: AnyMessage) -> Iterator[Said]:
    if listener.HasField("api_listener") or listener.HasField("filter_chain_matcher"):
        return
    if listener.HasField("default_filter_chain") and not listener.HasField("fcds_config") and _all_are_taken(listener):
        problem = "a filter chain without conditions takes every connection that the others do not"
        yield Said(("default_filter_chain",), CHAIN_UNUSED, {"problem": problem})
    filters = {message_name(each.typed_config.type_url) for each in listener.listener_filters}
    if listener.address.WhichOneof("address") != "socket_address" or _is_for_datagrams(listener):
        return
    if filters <= _PLAIN:
        yield from _without_inspector(listener)
    if filters <= {*_PLAIN, _TLS_INSPECTOR}:
        yield from _of_other_ports(listener)


def _all_are_taken(listener: AnyMessage) -> bool:
    """Whether each connection has a filter chain in the list. That is certain where one chain has no conditions and
    each of the others one: what is chosen by one condition then fails by no other.
    """
    counts = [len(each.filter_chain_match.ListFields()) for each in listener.filter_chains]
    return 0 in counts and max(counts) <= 1


def _is_for_datagrams(listener: AnyMessage) -> bool:
    socket = listener.address.socket_address
    return bool(socket.protocol == socket.UDP)


def _without_inspector(listener: AnyMessage) -> Iterator[Said]:
    for index, each in enumerate(listener.filter_chains):
        match, place = each.filter_chain_match, ("filter_chains", index, "filter_chain_match")
        wanted = "server_names" if match.server_names else "transport_protocol"
        if match.server_names or match.transport_protocol == "tls":
            problem = "the listener has no TLS inspector, and so knows nothing of what a caller says in TLS"
            yield Said((*place, wanted), CHAIN_UNUSED, {"problem": problem})


def _of_other_ports(listener: AnyMessage) -> Iterator[Said]:
    """Filter chains for ports that the listener does not have, where no connection was meant for another address."""
    addresses = [listener.address, *(each.address for each in listener.additional_addresses)]
    if (
        listener.use_original_dst.value
        or listener.transparent.value
        or listener.HasField("bind_to_port")
        or not all(each.socket_address.port_value for each in addresses)
    ):
        return
    ports = {each.socket_address.port_value for each in addresses}
    for index, each in enumerate(listener.filter_chains):
        match = each.filter_chain_match
        if match.HasField("destination_port") and match.destination_port.value not in ports:
            place: Path = ("filter_chains", index, "filter_chain_match", "destination_port")
            yield Said(place, CHAIN_UNUSED, {"problem": "no address of the listener has this port"})


_RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.listener.v3.Listener": _listener,
    _ROUTE + "RouteConfiguration": _configuration,
    _ROUTE + "RouteMatch": _match,
    _ROUTE + "VirtualHost": _host,
}
