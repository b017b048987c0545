"""Which fields of a manifest a form shows, and where each stands: the common ones of clusters, endpoints, listeners
and routes. Pure.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, TYPE_URL_PREFIX, ResourceType
from xdscore.schema.positions import Path
from xdscore.schema.text import Tree
from xdscore.schema.text_edit import value_at

_ADS: Final[Tree] = {"ads": {}, "resource_api_version": "V3"}
_TLS_TYPE: Final = TYPE_URL_PREFIX + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
_HCM_TYPE: Final = TYPE_URL_PREFIX + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


class Holds(Enum):
    """What somebody writes into a field."""

    TEXT = auto()
    NUMBER = auto()
    LIST = auto()
    """Texts with commas between them."""


@dataclass(frozen=True, slots=True)
class Common:
    """A field of a form. `path`: where its value stands in the manifest.

    choices: the only values that there are; empty: any.
    hint: what may be written.
    names: the type of the resources that the field names; None where it names none.
    needs: what is written first where it is missing, by its path.
    if_value: `needs` holds for this value only; empty: for each.
    """

    label: str
    path: Path
    holds: Holds = Holds.TEXT
    choices: tuple[str, ...] = ()
    hint: str = ""
    names: ResourceType | None = None
    needs: tuple[tuple[Path, Tree], ...] = ()
    if_value: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Fields that belong together. `removes`: the path of the item that they make up; None where it cannot be removed.
    `adds`: an item that can be added below this section: what it is called, its path, and its content.
    """

    title: str
    fields: tuple[Common, ...] = ()
    removes: Path | None = None
    adds: tuple[str, Path, Tree] | None = None


def sections_of(kind: ResourceType, tree: Mapping[str, Tree]) -> tuple[Section, ...]:
    """The sections of the form for a manifest of this type; none where there is no form for it."""
    made = _SECTIONS.get(kind)
    return tuple(made(dict(tree))) if made is not None else ()


def _items(tree: Tree, *path: str) -> list[Tree]:
    found = value_at(tree, path)
    return found if isinstance(found, list) else []


_DURATION: Final = "such as 1s or 0.5s"
_TLS: Final[Path] = ("transport_socket", "typed_config")
_CONTEXT: Final[Path] = (*_TLS, "common_tls_context")
_TLS_SOCKET: Final[tuple[Path, Tree]] = (
    ("transport_socket",),
    {"name": "envoy.transport_sockets.tls", "typed_config": {"@type": _TLS_TYPE}},
)
_CHECK: Final[Path] = ("health_checks", 0)
_CHECKED: Final[tuple[Path, Tree]] = (
    ("health_checks",),
    [{"timeout": "1s", "interval": "10s", "unhealthy_threshold": 3, "healthy_threshold": 2,
      "http_health_check": {"path": "/"}}],
)  # fmt: skip
_THRESHOLD: Final[Path] = ("circuit_breakers", "thresholds", 0)


def _cluster(tree: Tree) -> Iterator[Section]:
    types = ("EDS", "STRICT_DNS", "LOGICAL_DNS", "STATIC", "ORIGINAL_DST")
    policies = ("ROUND_ROBIN", "LEAST_REQUEST", "RING_HASH", "RANDOM", "MAGLEV")
    eds: tuple[Path, Tree] = (("eds_cluster_config",), {"eds_config": _ADS})
    yield Section("Cluster", (
        Common("Type", ("type",), choices=types, needs=(eds,), if_value="EDS"),
        Common("EDS name", ("eds_cluster_config", "service_name"), hint="without one: the cluster's", names=ENDPOINT,
               needs=(eds,)),
        Common("Connect timeout", ("connect_timeout",), hint=_DURATION),
        Common("Load balancing", ("lb_policy",), choices=policies),
    ))  # fmt: skip
    if value_at(tree, (*_TLS, "@type")) in (None, _TLS_TYPE):
        certificates: Path = (*_CONTEXT, "tls_certificate_sds_secret_configs")
        authority: Path = (*_CONTEXT, "validation_context_sds_secret_config")
        yield Section("TLS to the endpoints", (
            Common("Server name (SNI)", (*_TLS, "sni"), needs=(_TLS_SOCKET,)),
            Common("Client certificate", (*certificates, 0, "name"), hint="a secret", names=SECRET,
                   needs=(_TLS_SOCKET, (certificates, [{"name": "", "sds_config": _ADS}]))),
            Common("Authority that is trusted", (*authority, "name"), hint="a secret", names=SECRET,
                   needs=(_TLS_SOCKET, (authority, {"name": "", "sds_config": _ADS}))),
        ))  # fmt: skip
    yield Section("Health check", tuple(
        Common(label, (*_CHECK, *path), holds, hint=hint, needs=(_CHECKED,))
        for label, path, holds, hint in (
            ("Path", ("http_health_check", "path"), Holds.TEXT, "the rest is filled in"),
            ("Every", ("interval",), Holds.TEXT, _DURATION),
            ("Timeout", ("timeout",), Holds.TEXT, _DURATION),
            ("Unhealthy after", ("unhealthy_threshold",), Holds.NUMBER, "failures"),
            ("Healthy after", ("healthy_threshold",), Holds.NUMBER, "successes"),
        )
    ))  # fmt: skip
    yield Section("Circuit breaker", tuple(
        Common(f"Most {word.replace('_', ' ')}", (*_THRESHOLD, f"max_{word}"), Holds.NUMBER)
        for word in ("connections", "pending_requests", "requests", "retries")
    ))  # fmt: skip


def _socket(path: Path) -> tuple[Common, ...]:
    address: Path = (*path, "socket_address")
    return (Common("Address", (*address, "address")), Common("Port", (*address, "port_value"), Holds.NUMBER))


_ENDPOINT: Final[Tree] = {
    "endpoint": {"address": {"socket_address": {"address": "192.0.2.10", "port_value": 8080}}},
    "load_balancing_weight": 1,
}


def _endpoints(tree: Tree) -> Iterator[Section]:
    health = ("HEALTHY", "UNHEALTHY", "DRAINING", "TIMEOUT", "DEGRADED")
    for number, group in enumerate(_items(tree, "endpoints")):
        path: Path = ("endpoints", number)
        rows = _items(group, "lb_endpoints")
        yield Section(f"Locality {number + 1}", (
            *(Common(part.replace("_", "-").capitalize(), (*path, "locality", part))
              for part in ("region", "zone", "sub_zone")),
            Common("Weight", (*path, "load_balancing_weight"), Holds.NUMBER),
            Common("Priority", (*path, "priority"), Holds.NUMBER, hint="0 is used first"),
        ), removes=path, adds=("an endpoint", (*path, "lb_endpoints", len(rows)), _ENDPOINT))  # fmt: skip
        for place in range(len(rows)):
            row: Path = (*path, "lb_endpoints", place)
            yield Section(f"Endpoint {number + 1}.{place + 1}", (
                *_socket((*row, "endpoint", "address")),
                Common("Weight", (*row, "load_balancing_weight"), Holds.NUMBER),
                Common("Health", (*row, "health_status"), choices=health),
            ), removes=row)  # fmt: skip
    added: Tree = {"locality": {"region": "local"}, "load_balancing_weight": 1, "lb_endpoints": [_ENDPOINT]}
    yield Section("", adds=("a locality", ("endpoints", len(_items(tree, "endpoints"))), added))


def _managers(tree: Tree) -> Iterator[Path]:
    """Where the connection managers of a listener stand."""
    for chain, held in enumerate(_items(tree, "filter_chains")):
        for place in range(len(_items(held, "filters"))):
            yield ("filter_chains", chain, "filters", place, "typed_config")
    yield ("default_filter_chain", "filters", 0, "typed_config")
    yield ("api_listener", "api_listener")


def _listener(tree: Tree) -> Iterator[Section]:
    if value_at(tree, ("api_listener",)) is None:
        yield Section("Listener", _socket(("address",)))
    for path in _managers(tree):
        if value_at(tree, (*path, "@type")) == _HCM_TYPE:
            rds: Path = (*path, "rds")
            inline = value_at(tree, (*path, "route_config")) is not None
            where = "HTTP, for gRPC clients (api_listener)" if path[0] == "api_listener" else "HTTP connection manager"
            named = Common("Route configuration", (*rds, "route_config_name"), names=ROUTE,
                           needs=((rds, {"route_config_name": "", "config_source": _ADS}),))  # fmt: skip
            prefix = Common("Prefix of statistics", (*path, "stat_prefix"))
            yield Section(where, (prefix,) if inline else (named, prefix))


_ROUTE: Final[Tree] = {"match": {"prefix": "/"}, "route": {"cluster": ""}}


def _routes(tree: Tree) -> Iterator[Section]:
    for number, host in enumerate(_items(tree, "virtual_hosts")):
        path: Path = ("virtual_hosts", number)
        rows = _items(host, "routes")
        yield Section(f"Virtual host {number + 1}", (
            Common("Name", (*path, "name")),
            Common("Domains", (*path, "domains"), Holds.LIST, hint="with commas between them"),
        ), removes=path, adds=("a route", (*path, "routes", len(rows)), _ROUTE))  # fmt: skip
        for place, row in enumerate(rows):
            yield from _route((*path, "routes", place), f"{number + 1}.{place + 1}", row)
    names = {value_at(each, ("name",)) for each in _items(tree, "virtual_hosts")}
    free = next(name for name in (f"host-{number}" for number in range(1, len(names) + 2)) if name not in names)
    added: Tree = {"name": free, "domains": [f"{free}.example.com"], "routes": [_ROUTE]}
    yield Section("", adds=("a virtual host", ("virtual_hosts", len(_items(tree, "virtual_hosts"))), added))


def _route(path: Path, number: str, row: Tree) -> Iterator[Section]:
    shares: Path = (*path, "route", "weighted_clusters", "clusters")
    weighted = _items(row, "route", "weighted_clusters", "clusters")
    match = (
        Common("Path begins with", (*path, "match", "prefix")),
        Common("Path is", (*path, "match", "path")),
    )
    to = () if weighted else (Common("To cluster", (*path, "route", "cluster"), names=CLUSTER),)
    parts: tuple[Common, ...] = ()
    for place in range(len(weighted)):
        parts += (
            Common(f"Cluster {place + 1}", (*shares, place, "name"), names=CLUSTER),
            Common(f"Weight {place + 1}", (*shares, place, "weight"), Holds.NUMBER),
        )
    redirect: Path = (*path, "redirect")
    others = (
        Common("Timeout", (*path, "route", "timeout"), hint=_DURATION),
        Common("Redirect to host", (*redirect, "host_redirect")),
        Common("Redirect to path", (*redirect, "path_redirect")),
    )
    share: tuple[str, Path, Tree] | None = None
    if weighted:
        share = ("a weighted cluster", (*shares, len(weighted)), {"name": "", "weight": 1})
    yield Section(f"Route {number}", (*match, *to, *parts, *others), removes=path, adds=share)


_SECTIONS: Final[Mapping[ResourceType, Callable[[Tree], Iterator[Section]]]] = {
    CLUSTER: _cluster,
    ENDPOINT: _endpoints,
    LISTENER: _listener,
    ROUTE: _routes,
}
