"""Where requests of a cluster go: its endpoints, with health, locality and priority."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from xdscore.routing.values import Endpoint, Place
from xdscore.schema.walk import AnyMessage

MAX_ENDPOINTS: Final = 1_000
_USABLE: Final = frozenset({"UNKNOWN", "HEALTHY", "DEGRADED"})


def endpoints_of(assignment: AnyMessage, at: Place) -> tuple[Endpoint, ...]:
    """The first endpoints of a `ClusterLoadAssignment`, which stands at `at`, those of lower priority numbers first."""
    found = (
        Endpoint(
            _address(each), _health(each), _locality(group.locality), at.at("endpoints", number, "lb_endpoints", index)
        )
        for number, group in sorted(enumerate(assignment.endpoints), key=lambda each: each[1].priority)
        for index, each in enumerate(group.lb_endpoints)
    )
    return tuple(islice(found, MAX_ENDPOINTS))


def endpoints_said(assignment: AnyMessage) -> str:
    """The endpoints in words: how many can take requests, by priority."""
    usable: Counter[int] = Counter()
    count: Counter[int] = Counter()
    for group in assignment.endpoints:
        count[group.priority] += len(group.lb_endpoints)
        usable[group.priority] += sum(_health(each) in _USABLE for each in group.lb_endpoints)
    if not count.total():
        return "It has no endpoints, so that requests are answered 503."
    parts = [f"{usable[each]} of {count[each]} in priority {each}" for each in sorted(count)]
    said = f"Endpoints that can take requests: {', '.join(parts)}."
    if not usable.total():
        return f"{said} As none can, a proxy may try any of them (panic threshold), or answer 503."
    first = min(each for each in count if usable[each])
    return said if first == min(count) else f"{said} Those of priority {first} are the first that can."


def unread_localities(assignment: AnyMessage) -> Iterator[int]:
    """The numbers of the localities whose endpoints come in a way that is not judged (LEDS)."""
    for index, group in enumerate(assignment.endpoints):
        if group.HasField("leds_cluster_locality_config"):
            yield index


def _health(endpoint: AnyMessage) -> str:
    return str(
        endpoint.DESCRIPTOR.fields_by_name["health_status"].enum_type.values_by_number[endpoint.health_status].name
    )


def _locality(locality: AnyMessage) -> str:
    return f"{locality.region}/{locality.zone}/{locality.sub_zone}".rstrip("/")


def _address(endpoint: AnyMessage) -> str:
    if endpoint.WhichOneof("host_identifier") == "endpoint_name":
        return str(endpoint.endpoint_name)
    address = endpoint.endpoint.address
    match address.WhichOneof("address"):
        case "socket_address":
            host, socket = address.socket_address.address, address.socket_address
            port = socket.named_port or socket.port_value
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        case "pipe":
            return str(address.pipe.path)
        case "envoy_internal_address":
            return f"internal listener {address.envoy_internal_address.server_listener_name}"
        case _:
            return ""
