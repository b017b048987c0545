"""What is refused of HTTP connection managers and routes although each field by itself keeps its rule. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from xdscore.schema.claims import domains_of
from xdscore.schema.codes import DOMAIN_TWICE
from xdscore.schema.positions import Path
from xdscore.schema.relations.listeners import MANAGER, without_config
from xdscore.schema.relations.order import HTTP_BEFORE, HTTP_LAST, order
from xdscore.schema.relations.said import Rule, Said, alike, no_value, together
from xdscore.schema.walk import AnyMessage

_ROUTE: Final = "envoy.config.route.v3."
_CONNECTS: Final = frozenset({"CONNECT", "CONNECT-UDP"})
_MS: Final = 1_000_000  # nanoseconds


def _manager(manager: AnyMessage) -> Iterator[Said]:
    for index, each in enumerate(manager.http_filters):
        if without_config(each) and not each.is_optional and not each.disabled:
            yield together(("http_filters", index, "typed_config"), "is needed by a filter")
    yield from order(manager.http_filters, ("http_filters",), last=HTTP_LAST, before=HTTP_BEFORE)
    yield from _upgrades(manager)
    if manager.common_http_protocol_options.HasField("max_response_headers_kb"):
        yield no_value(
            ("common_http_protocol_options", "max_response_headers_kb"), "is for clusters, which have responses"
        )


def _upgrades(message: AnyMessage) -> Iterator[Said]:
    types = (
        (("upgrade_configs", index), each.upgrade_type.lower()) for index, each in enumerate(message.upgrade_configs)
    )
    yield from (
        alike((*place, "upgrade_type"), (*first, "upgrade_type"), "upgrade") for place, _, first in _again(types)
    )


def _route_action(action: AnyMessage) -> Iterator[Said]:
    yield from _upgrades(action)
    for index, each in enumerate(action.upgrade_configs):
        if each.HasField("connect_config") and each.upgrade_type.upper() not in _CONNECTS:
            yield together(("upgrade_configs", index, "connect_config"), "is for upgrades of the type CONNECT only")


def _mirror(policy: AnyMessage) -> Iterator[Said]:
    if bool(policy.cluster) == bool(policy.cluster_header):
        yield together(("cluster",), "must be given, or 'cluster_header', and not both")


def _domains(route: AnyMessage) -> Iterator[Said]:
    for place, domain, first in _again(domains_of(route)):
        yield Said(place, DOMAIN_TWICE, {"domain": domain}, first)


def _route_configuration(route: AnyMessage) -> Iterator[Said]:
    yield from _domains(route)
    known = {each.extension.name for each in route.cluster_specifier_plugins}
    for number, host in enumerate(route.virtual_hosts):
        for index, each in enumerate(host.routes):
            if each.route.HasField("cluster_specifier_plugin") and each.route.cluster_specifier_plugin not in known:
                place: Path = ("virtual_hosts", number, "routes", index, "route", "cluster_specifier_plugin")
                yield together(place, "must be the name of one of 'cluster_specifier_plugins'")


def _own_domains(host: AnyMessage) -> Iterator[Said]:
    own = ((("domains", index), domain.lower()) for index, domain in enumerate(host.domains))
    for place, domain, first in _again(own):
        yield Said(place, DOMAIN_TWICE, {"domain": domain}, first)


def _virtual_host(host: AnyMessage) -> Iterator[Said]:
    if host.HasField("matcher") and host.routes:
        yield together(("matcher",), "cannot be given together with 'routes'")


def _again(each: Iterable[tuple[Path, str]]) -> Iterator[tuple[Path, str, Path]]:
    """Each text that stood before, with its place and the place of the first such text."""
    first: dict[str, Path] = {}
    for place, text in each:
        if text in first:
            yield place, text, first[text]
        first.setdefault(text, place)


def _back_off(back_off: AnyMessage) -> Iterator[Said]:
    base, most = back_off.base_interval, back_off.max_interval
    if back_off.HasField("max_interval") and _milliseconds(most) < _milliseconds(base):
        yield together(("max_interval",), "must not be below 'base_interval'")


def _milliseconds(duration: AnyMessage) -> int:
    return int(duration.seconds) * 1_000 + int(duration.nanos) // _MS


def _weighted(weighted: AnyMessage) -> Iterator[Said]:
    for index, each in enumerate(weighted.clusters):
        if bool(each.name) == bool(each.cluster_header):
            yield together(("clusters", index, "name"), "must be given, or 'cluster_header', and not both")
        if not each.HasField("weight"):
            yield together(("clusters", index, "weight"), "is required")
    if weighted.clusters and not sum(each.weight.value for each in weighted.clusters):
        yield together(("clusters",), "must have weights whose sum is above 0")


RULES: Final[Mapping[str, Rule]] = {
    MANAGER: _manager,
    _ROUTE + "RetryPolicy.RetryBackOff": _back_off,
    _ROUTE + "RouteAction": _route_action,
    _ROUTE + "RouteAction.RequestMirrorPolicy": _mirror,
    _ROUTE + "RouteConfiguration": _route_configuration,
    _ROUTE + "VirtualHost": _virtual_host,
    _ROUTE + "WeightedCluster": _weighted,
}
"""The rules by the full name of the message that each is about."""
GRPC_READS: Final = frozenset({_ROUTE + "RetryPolicy.RetryBackOff", _ROUTE + "WeightedCluster"})
"""Those of the messages that gRPC clients read, too."""
ALONE: Final[Mapping[str, tuple[Rule, ...]]] = {_ROUTE + "VirtualHost": (_own_domains,)}
"""The rules of messages that are a resource of their own."""
