"""What is refused of listeners although each field by itself keeps its rule. Pure."""

from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_network
from itertools import product
from math import prod
from typing import Any, Final

from xdscore.schema.positions import Path
from xdscore.schema.relations.addresses import ip_of, may_be_ipv4_compatible, must_be_ip
from xdscore.schema.relations.order import NETWORK_BEFORE, NETWORK_LAST, order
from xdscore.schema.relations.said import Rule, Said, alike, no_value, together
from xdscore.schema.walk import AnyMessage

LISTENER: Final = "envoy.config.listener.v3.Listener"
MANAGER: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_TCP_PROXY: Final = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
# Combinations of criteria that are looked at in one listener; more is left to proxies.
_MAX_COMBINATIONS: Final = 50_000


def _listener(listener: AnyMessage) -> Iterator[Said]:
    # What has an API listener binds nothing and has no connections: gRPC clients and Envoy Mobile read it.
    if listener.HasField("api_listener"):
        yield from _api(listener)
        return
    yield from _addresses(listener)
    yield from _handling(listener)
    if listener.HasField("filter_chain_matcher"):
        yield from _names(listener)
        return
    if listener.HasField("fcds_config"):
        yield together(("filter_chain_matcher",), "is needed by 'fcds_config'")
    for number, chain in enumerate(listener.filter_chains):
        yield from (
            said.below(("filter_chains", number, "filter_chain_match")) for said in _match(chain.filter_chain_match)
        )
    yield from _overlaps(listener)


def _addresses(listener: AnyMessage) -> Iterator[Said]:
    if listener.HasField("internal_listener"):
        if listener.HasField("address"):
            yield together(("address",), "is not for an internal listener")
    elif listener.address.WhichOneof("address") is None:
        yield together(("address",), "is needed by a listener")
    additional = (
        (("additional_addresses", index, "address"), each.address)
        for index, each in enumerate(listener.additional_addresses)
    )
    for place, address in ((("address",), listener.address), *additional):
        if len(place) > 1 and address.WhichOneof("address") is None:
            yield together(place, "is needed by an additional address")
        elif address.socket_address.protocol != listener.address.socket_address.protocol:
            yield together((*place, "socket_address", "protocol"), "must be the same in all addresses of a listener")
        yield from must_be_ip(address, place)
        socket = address.socket_address
        if socket.ipv4_compat and not may_be_ipv4_compatible(socket.address):
            yield together(
                (*place, "socket_address", "ipv4_compat"), "is for the address '::' and for IPv4 written as IPv6 only"
            )


def _handling(listener: AnyMessage) -> Iterator[Said]:
    """Whether there are chains for connections, and none for datagrams that are no connections: all but QUIC's."""
    socket = listener.address.socket_address
    if socket.protocol == socket.UDP and not listener.udp_listener_config.HasField("quic_options"):
        if listener.filter_chains:
            yield together(("filter_chains",), "are not for datagrams, unless 'udp_listener_config' has 'quic_options'")
    elif not (listener.filter_chains or listener.HasField("default_filter_chain") or listener.HasField("fcds_config")):
        yield together(("filter_chains",), "must have an item, or 'default_filter_chain' be given")


def _names(listener: AnyMessage) -> Iterator[Said]:
    """The matcher of a listener chooses among its chains by name."""
    first: dict[str, int] = {}
    for index, chain in enumerate(listener.filter_chains):
        place: Path = ("filter_chains", index, "name")
        if not chain.name:
            yield together(place, "is needed where 'filter_chain_matcher' chooses")
        elif chain.name in first:
            yield alike(place, ("filter_chains", first[chain.name], "name"), "name")
        first.setdefault(chain.name, index)


def _overlaps(listener: AnyMessage) -> Iterator[Said]:
    """The filter chains that are chosen for a connection for which an earlier one is chosen, too."""
    criteria = [_criteria(chain.filter_chain_match) for chain in listener.filter_chains]
    if sum(prod(map(len, each)) for each in criteria) > _MAX_COMBINATIONS:
        return
    seen: dict[tuple[object, ...], int] = {}
    for index, each in enumerate(criteria):
        before = min((seen[combination] for combination in product(*each) if combination in seen), default=None)
        if before is not None:
            yield alike(("filter_chains", index), ("filter_chains", before), "connections")
        for combination in product(*each):
            seen.setdefault(combination, index)


def _criteria(match: AnyMessage) -> tuple[frozenset[object], ...]:
    """What a connection must have one of each, in Envoy's order; a set with nothing but None where anything does."""
    anything = frozenset({None})
    return (
        frozenset({match.destination_port.value}),
        frozenset(map(_network, match.prefix_ranges)) or anything,
        frozenset(map(_server_name, match.server_names)) or anything,
        frozenset({match.transport_protocol}),
        frozenset(match.application_protocols) or anything,
        frozenset(map(_network, match.direct_source_prefix_ranges)) or anything,
        frozenset({match.source_type}),
        frozenset(map(_network, match.source_prefix_ranges)) or anything,
        frozenset(match.source_ports) or anything,
    )


def _network(prefix: AnyMessage) -> object:
    try:
        return ip_network((prefix.address_prefix, prefix.prefix_len.value), strict=False)
    except ValueError:
        return prefix.address_prefix, prefix.prefix_len.value


def _server_name(name: str) -> str:
    return name.removeprefix("*").lower()


_PREFIXES: Final = ("prefix_ranges", "direct_source_prefix_ranges", "source_prefix_ranges")
# What each list compares its items by; Envoy takes none twice.
_ONCE: Final[Mapping[str, Callable[[Any], object]]] = {
    "server_names": _server_name,
    "application_protocols": str,
    "source_ports": int,
    **dict.fromkeys(_PREFIXES, _network),
}


def _match(match: AnyMessage) -> Iterator[Said]:
    for index, name in enumerate(match.server_names):
        if "*" in name and not name.startswith("*."):
            yield no_value(
                ("server_names", index), "may have a '*' only in place of its first label, as in '*.example.com'"
            )
    given = {field.name for field, _ in match.ListFields()}
    for field in ("address_suffix", "suffix_len"):
        if field in given:
            yield no_value((field,), "is not made by any proxy")
    yield from _items(match)


def _items(match: AnyMessage) -> Iterator[Said]:
    for field in _PREFIXES:
        for index, each in enumerate(getattr(match, field)):
            if ip_of(each.address_prefix) is None:
                yield no_value((field, index, "address_prefix"), "must be an IP address")
    for field, key in _ONCE.items():
        first: dict[object, int] = {}
        for index, each in enumerate(map(key, getattr(match, field))):
            if each in first:
                yield alike((field, index), (field, first[each]), "connections")
            first.setdefault(each, index)


def _filter_chain(chain: AnyMessage) -> Iterator[Said]:
    for index, each in enumerate(chain.filters):
        if without_config(each):
            yield together(("filters", index, "typed_config"), "is needed by a filter")
    yield from order(chain.filters, ("filters",), last=NETWORK_LAST, before=NETWORK_BEFORE)


def _listener_filter(filter_: AnyMessage) -> Iterator[Said]:
    if without_config(filter_):
        yield together(("typed_config",), "is needed by a filter")


def _tcp_proxy(proxy: AnyMessage) -> Iterator[Said]:
    if proxy.upstream_connect_mode and not proxy.HasField("max_early_data_bytes"):
        yield together(("max_early_data_bytes",), "is needed by every 'upstream_connect_mode' but IMMEDIATE")
    for index, each in enumerate(proxy.proxy_protocol_tlvs):
        if bool(each.value) == each.HasField("format_string"):
            yield together(("proxy_protocol_tlvs", index, "value"), "must be given, or 'format_string', and not both")


def _tunneling(config: AnyMessage) -> Iterator[Said]:
    if config.post_path and not config.use_post:
        yield together(("post_path",), "is of use with 'use_post' only")


def managed(manager: AnyMessage, listener: AnyMessage) -> Iterator[Said]:
    """What is wrong with an HTTP connection manager in a listener that has connections: it speaks HTTP/3 where the
    listener has no QUIC, or something else where it has; its last filter is disabled, which gRPC passes over.
    """
    last = len(manager.http_filters) - 1
    if last >= 0 and manager.http_filters[last].disabled:
        yield together(("http_filters", last, "disabled"), "cannot be true of the last filter")
    is_quic = listener.udp_listener_config.HasField("quic_options")
    if is_quic != (manager.codec_type == manager.HTTP3):
        yield together(
            ("codec_type",), "must be HTTP3 where 'udp_listener_config' has 'quic_options', and may not be elsewhere"
        )


def _api(listener: AnyMessage) -> Iterator[Said]:
    if not listener.api_listener.api_listener.type_url:
        yield together(("api_listener", "api_listener"), "is needed by an API listener")
    if listener.HasField("internal_listener"):
        yield together(("internal_listener",), "cannot be given together with 'api_listener'")


def _extension(filter_: AnyMessage) -> Iterator[Said]:
    if not filter_.typed_config.type_url:
        yield together(("typed_config",), "is needed by a filter of an extension")


def _access_log(log: AnyMessage) -> Iterator[Said]:
    if not log.typed_config.type_url:
        yield together(("typed_config",), "is needed by an access log")


def without_config(each: AnyMessage) -> bool:
    """Whether a filter of a chain has nothing that configures it: neither a configuration nor a source of one."""
    kind = each.WhichOneof("config_type")
    return kind is None or (kind == "typed_config" and not each.typed_config.type_url)


RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.accesslog.v3.AccessLog": _access_log,
    "envoy.config.accesslog.v3.ExtensionFilter": _extension,
    LISTENER: _listener,
    "envoy.config.listener.v3.ListenerFilter": _listener_filter,
    "envoy.config.listener.v3.FilterChain": _filter_chain,
    _TCP_PROXY: _tcp_proxy,
    _TCP_PROXY + ".TunnelingConfig": _tunneling,
}
"""The rules by the full name of the message that each is about."""
