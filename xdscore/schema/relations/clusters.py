"""What is refused of clusters although each field by itself keeps its rule. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from xdscore.schema.positions import Path
from xdscore.schema.relations import upstreams
from xdscore.schema.relations.addresses import must_be_ip, socket_must_be_ip
from xdscore.schema.relations.said import Rule, Said, no_value, together
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage, unpack

_AGGREGATE: Final = "envoy.extensions.clusters.aggregate.v3.ClusterConfig"
_DNS: Final = "envoy.extensions.clusters.dns.v3.DnsCluster"
_MAGLEV: Final = "envoy.extensions.load_balancing_policies.maglev.v3.Maglev"
_RING_MIN, _RING_MAX = 1024, 8 * 1024 * 1024  # Envoy's defaults
_TABLE_MAX: Final = 5_000_011  # the API's own rule; beyond it that one speaks
_WEIGHTS_MAX: Final = 2**32 - 1
_STATUS_MIN, _STATUS_MAX = 100, 600


def _cluster(cluster: AnyMessage) -> Iterator[Said]:
    yield from _balancing(cluster)
    yield from upstreams.judged(cluster)
    # No client makes anything of more than one: gRPC, which does, reads them in endpoints of their own.
    if len(cluster.load_assignment.policy.drop_overloads) > 1:
        yield together(("load_assignment", "policy", "drop_overloads"), "may have one item in a cluster")
    if cluster.HasField("cluster_type"):
        yield from _own_type(cluster)
        return
    if cluster.type == cluster.STATIC:
        yield from _static_hosts(cluster.load_assignment)
    elif cluster.type == cluster.EDS and not cluster.eds_cluster_config.HasField("eds_config"):
        yield together(("eds_cluster_config", "eds_config"), "is needed by a cluster of type EDS")
    elif cluster.type == cluster.LOGICAL_DNS:
        yield from _one_host(cluster.load_assignment)
    elif cluster.type == cluster.ORIGINAL_DST and cluster.HasField("load_assignment"):
        yield together(
            ("load_assignment",), "is not for a cluster of type ORIGINAL_DST, which has no endpoints of its own"
        )
    if cluster.type in (cluster.STRICT_DNS, cluster.LOGICAL_DNS):
        yield from _without_resolvers(cluster.load_assignment)
    # gRPC, which reads none but EDS and LOGICAL_DNS, passes over it.
    if cluster.HasField("eds_cluster_config") and cluster.type not in (cluster.EDS, cluster.LOGICAL_DNS):
        yield together(("eds_cluster_config",), "is for clusters of type EDS only")


def _balancing(cluster: AnyMessage) -> Iterator[Said]:
    # A load_balancing_policy takes the place of lb_policy and of what belongs to it.
    if cluster.HasField("load_balancing_policy"):
        yield from _policies(cluster.load_balancing_policy.policies)
        if cluster.HasField("lb_subset_config"):
            yield together(("lb_subset_config",), "cannot be given together with 'load_balancing_policy'")
    elif cluster.lb_policy == cluster.RING_HASH:
        yield from _ring(cluster.ring_hash_lb_config)
        yield from _weights(cluster.load_assignment)
    elif cluster.lb_policy == cluster.MAGLEV:
        yield from (said.below(("maglev_lb_config",)) for said in _maglev(cluster.maglev_lb_config))
    elif cluster.lb_policy == cluster.LOAD_BALANCING_POLICY_CONFIG:
        yield together(("load_balancing_policy",), "is needed by the lb_policy LOAD_BALANCING_POLICY_CONFIG")
    elif not cluster.HasField("cluster_type"):
        provided = cluster.lb_policy == cluster.CLUSTER_PROVIDED
        if provided != (cluster.type == cluster.ORIGINAL_DST):
            yield together(("lb_policy",), "is CLUSTER_PROVIDED in clusters of type ORIGINAL_DST, and only there")


def _policies(policies: AnyMessage) -> Iterator[Said]:
    place: Path = ("load_balancing_policy", "policies")
    if not policies:
        yield together(place, "must have an item")
    # Of several, clients take the first that they know: which, is theirs to say.
    elif len(policies) == 1:
        packed = policies[0].typed_extension_config.typed_config
        inside: Path = (*place, 0, "typed_extension_config", "typed_config")
        maglev = unpack(packed) if message_name(packed.type_url) == _MAGLEV else None
        if not packed.type_url:
            yield together(inside, "is needed by a policy")
        elif maglev is not None:
            yield from (said.below(inside) for said in _maglev(maglev))


def _own_type(cluster: AnyMessage) -> Iterator[Said]:
    packed = cluster.cluster_type.typed_config
    if cluster.cluster_type.HasField("typed_config") and not packed.type_url:
        yield together(("cluster_type", "typed_config"), "must have a type")
    dns = unpack(packed) if message_name(packed.type_url) == _DNS else None
    if dns is not None:
        yield from _without_resolvers(cluster.load_assignment)
        if dns.all_addresses_in_single_endpoint:
            yield from _one_host(cluster.load_assignment)
    # gRPC, which reads aggregates, passes over it.
    if cluster.HasField("eds_cluster_config") and message_name(packed.type_url) != _AGGREGATE:
        yield together(("eds_cluster_config",), "is for clusters of type EDS only")


def _ring(ring: AnyMessage) -> Iterator[Said]:
    smallest = ring.minimum_ring_size.value if ring.HasField("minimum_ring_size") else _RING_MIN
    largest = ring.maximum_ring_size.value if ring.HasField("maximum_ring_size") else _RING_MAX
    if smallest > largest:
        yield together(
            ("ring_hash_lb_config", "minimum_ring_size"),
            f"must not be above 'maximum_ring_size'; they are {smallest:,} and {largest:,}",
        )


def _weights(assignment: AnyMessage) -> Iterator[Said]:
    for number, locality in enumerate(assignment.endpoints):
        if sum(host.load_balancing_weight.value for host in locality.lb_endpoints) > _WEIGHTS_MAX:
            place: Path = ("load_assignment", "endpoints", number, "lb_endpoints")
            yield together(place, f"must have weights whose sum is at most {_WEIGHTS_MAX:,}")


def _maglev(maglev: AnyMessage) -> Iterator[Said]:
    size = maglev.table_size.value
    # One is none, but Envoy takes it.
    if maglev.HasField("table_size") and size <= _TABLE_MAX and size != 1 and not _is_prime(size):
        above = next(each for each in range(size + 1, _TABLE_MAX + 1) if _is_prime(each))  # the largest is one
        yield no_value(("table_size",), f"must be a prime number, such as {above}; it is {size}")


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % each for each in range(2, int(number**0.5) + 1))


def _static_hosts(assignment: AnyMessage) -> Iterator[Said]:
    for number, locality in enumerate(assignment.endpoints):
        inside: Path = ("load_assignment", "endpoints", number)
        if locality.HasField("leds_cluster_locality_config"):
            yield together((*inside, "leds_cluster_locality_config"), "is for clusters of type EDS only")
        for index, host in enumerate(locality.lb_endpoints):
            yield from _static_host(host.endpoint, (*inside, "lb_endpoints", index, "endpoint"))


def _static_host(endpoint: AnyMessage, place: Path) -> Iterator[Said]:
    if endpoint.address.WhichOneof("address") is None:
        yield together(place, "must have an address in a cluster of type STATIC")
    else:
        yield from must_be_ip(endpoint.address, (*place, "address"))
    if endpoint.address.socket_address.network_namespace_filepath:
        yield together(
            (*place, "address", "socket_address", "network_namespace_filepath"), "is for listeners, not for hosts"
        )
    for index, each in enumerate(endpoint.additional_addresses):
        inside: Path = (*place, "additional_addresses", index, "address")
        if each.address.WhichOneof("address") is None:
            yield together(inside, "is needed by an additional address")
        yield from must_be_ip(each.address, inside)


def _one_host(assignment: AnyMessage) -> Iterator[Said]:
    hosts = [len(locality.lb_endpoints) for locality in assignment.endpoints]
    if hosts != [1]:
        count = f"{sum(hosts)} in {len(hosts)}" if hosts else "none"
        yield together(
            ("load_assignment", "endpoints"),
            f"must have exactly one endpoint, in one locality, where all addresses are one endpoint; it has {count}",
        )


def _without_resolvers(assignment: AnyMessage) -> Iterator[Said]:
    for number, locality in enumerate(assignment.endpoints):
        for index, host in enumerate(locality.lb_endpoints):
            if host.endpoint.address.socket_address.resolver_name:
                place: Path = ("load_assignment", "endpoints", number, "lb_endpoints", index, "endpoint", "address")
                yield together((*place, "socket_address", "resolver_name"), "is not for clusters that ask DNS")


def _bind(bind: AnyMessage) -> Iterator[Said]:
    if bind.HasField("source_address"):
        yield from socket_must_be_ip(bind.source_address, ("source_address",))


def _health_check(check: AnyMessage) -> Iterator[Said]:
    for field in ("expected_statuses", "retriable_statuses"):
        for index, each in enumerate(getattr(check, field)):
            if not _STATUS_MIN <= each.start < each.end <= _STATUS_MAX:
                yield together(
                    (field, index, "start"),
                    f"must be at least {_STATUS_MIN} and below 'end', which is at most {_STATUS_MAX}",
                )


RULES: Final[Mapping[str, Rule]] = {
    "envoy.config.cluster.v3.Cluster": _cluster,
    "envoy.config.core.v3.HealthCheck.HttpHealthCheck": _health_check,
    "envoy.config.core.v3.BindConfig": _bind,
}
"""The rules by the full name of the message that each is about."""
