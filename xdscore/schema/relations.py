"""What proxies refuse although each field by itself keeps its rule: fields that do not go together.

Only what a real Envoy 1.40 refuses stands here (`make differential` asks it), and nothing that another client could
make sense of. Pure.
"""

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final

from xdscore.findings import Finding
from xdscore.schema.codes import TOGETHER
from xdscore.schema.positions import Path
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage

_ROUTE: Final = "envoy.config.route.v3."
_MANAGER: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER: Final = "envoy.extensions.filters.http.router.v3.Router"
_LAST_OF_NETWORK: Final = frozenset({_MANAGER, "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"})
_STATUS_MIN, _STATUS_MAX = 100, 600
_RING_MIN, _RING_MAX = 1024, 8 * 1024 * 1024  # Envoy's defaults
_MS: Final = 1_000_000  # nanoseconds

Found = Iterator[tuple[Path, Finding]]


def relations_in(message: AnyMessage, path: Path) -> Found:
    """The findings about fields of `message` that contradict each other; the messages inside it are not looked at."""
    rule = _RULES.get(message.DESCRIPTOR.full_name)
    if rule is not None:
        for place, problem in rule(message):
            yield (*path, *place), TOGETHER.finding("", field=str(place[-1]), problem=problem)


_Problems = Iterator[tuple[Path, str]]


def _health_check(check: AnyMessage) -> _Problems:
    for field in ("expected_statuses", "retriable_statuses"):
        for index, each in enumerate(getattr(check, field)):
            if not _STATUS_MIN <= each.start < each.end <= _STATUS_MAX:
                yield (
                    (field, index, "start"),
                    f"must be at least {_STATUS_MIN} and below 'end', which is at most {_STATUS_MAX}",
                )


def _cluster(cluster: AnyMessage) -> _Problems:
    ring = cluster.ring_hash_lb_config
    if cluster.lb_policy == cluster.RING_HASH and not cluster.HasField("load_balancing_policy"):
        smallest = ring.minimum_ring_size.value if ring.HasField("minimum_ring_size") else _RING_MIN
        largest = ring.maximum_ring_size.value if ring.HasField("maximum_ring_size") else _RING_MAX
        if smallest > largest:
            yield (
                ("ring_hash_lb_config", "minimum_ring_size"),
                f"must not be above 'maximum_ring_size'; they are {smallest:,} and {largest:,}",
            )
    if not cluster.HasField("cluster_type") and cluster.type == cluster.STATIC:
        yield from _static_hosts(cluster.load_assignment)


def _static_hosts(assignment: AnyMessage) -> _Problems:
    for number, locality in enumerate(assignment.endpoints):
        for index, host in enumerate(locality.lb_endpoints):
            place = ("load_assignment", "endpoints", number, "lb_endpoints", index)
            if host.WhichOneof("host_identifier") == "endpoint_name":
                continue
            address = host.endpoint.address
            if address.WhichOneof("address") is None:
                yield (*place, "endpoint"), "must have an address in a cluster of type STATIC"
            else:
                yield from _ip(address, (*place, "endpoint", "address"))


def _ip(address: AnyMessage, place: Path) -> _Problems:
    """The finding that an address must be an IP address, because nothing would resolve a name there, and is none."""
    socket = address.socket_address
    if address.WhichOneof("address") == "socket_address" and not socket.resolver_name and not _is_ip(socket.address):
        yield (*place, "socket_address", "address"), "must be an IP address here; nothing resolves a name"


def _is_ip(text: str) -> bool:
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def _filter_chain(chain: AnyMessage) -> _Problems:
    last = len(chain.filters) - 1
    for index, each in enumerate(chain.filters):
        place = ("filters", index)
        if _without_config(each):
            yield (*place, "typed_config"), "is needed by a filter"
        elif index < last and message_name(each.typed_config.type_url) in _LAST_OF_NETWORK:
            yield (*place, "typed_config"), "is of a filter that must be the last of its chain"


def _manager(manager: AnyMessage) -> _Problems:
    last = len(manager.http_filters) - 1
    for index, each in enumerate(manager.http_filters):
        place = ("http_filters", index)
        if _without_config(each):
            if not each.is_optional and not each.disabled:
                yield (*place, "typed_config"), "is needed by a filter"
        elif index < last and message_name(each.typed_config.type_url) == _ROUTER:
            yield (*place, "typed_config"), "is the router's, which must be the last of the filters"


def _without_config(each: AnyMessage) -> bool:
    kind = each.WhichOneof("config_type")
    return kind is None or (kind == "typed_config" and not each.typed_config.type_url)


def _back_off(back_off: AnyMessage) -> _Problems:
    base, most = back_off.base_interval, back_off.max_interval
    if back_off.HasField("max_interval") and _milliseconds(most) < _milliseconds(base):
        yield ("max_interval",), "must not be below 'base_interval'"


def _milliseconds(duration: AnyMessage) -> int:
    return int(duration.seconds) * 1_000 + int(duration.nanos) // _MS


def _weighted(weighted: AnyMessage) -> _Problems:
    for index, each in enumerate(weighted.clusters):
        if bool(each.name) == bool(each.cluster_header):
            yield ("clusters", index, "name"), "must be given, or 'cluster_header', and not both"
        if not each.HasField("weight"):
            yield ("clusters", index, "weight"), "is required"
    if weighted.clusters and not sum(each.weight.value for each in weighted.clusters):
        yield ("clusters",), "must have weights whose sum is above 0"


_RULES: Final[dict[str, Callable[[AnyMessage], _Problems]]] = {
    "envoy.config.core.v3.HealthCheck.HttpHealthCheck": _health_check,
    "envoy.config.cluster.v3.Cluster": _cluster,
    "envoy.config.listener.v3.FilterChain": _filter_chain,
    _MANAGER: _manager,
    _ROUTE + "RetryPolicy.RetryBackOff": _back_off,
    _ROUTE + "WeightedCluster": _weighted,
}
