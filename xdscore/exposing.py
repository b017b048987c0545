"""Exposing a service: from a few facts that somebody typed to the manifests that make clients reach it. Pure.

Everything wrong is said at once, at the fact that it is about; nothing that exists is written over. The one thing that
exists and is written is the route configuration of a listener that the service is put behind: it gets one virtual host
more.
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Any, Final

from xdscore.labels import LABELS_KEY, Labels
from xdscore.names import name_problem
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, TYPE_URL_PREFIX, ResourceType

Tree = dict[str, Any]
Read = Callable[[ResourceType, str], Mapping[str, object] | None]
"""The manifest of a stored resource; None where there is none."""
Key = tuple[str, str]

MAX_NAME_CHARS: Final = 200
MAX_DOMAINS: Final = 50
MAX_ADDRESSES: Final = 100
MAX_TIMEOUT_S: Final = 86_400
_MAX_DOMAIN_CHARS: Final = 253
_MAX_PREFIX_CHARS: Final = 1_024
_HTTP: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER: Final = "envoy.extensions.filters.http.router.v3.Router"
# What cannot be typed beside something else, by the name of its fact.
_OF_PROXIES: Final = {
    "port": "gRPC programs have no listener with a port: leave it empty.",
    "listener": "gRPC programs have no listener with a port: leave it empty.",
    "secret": "gRPC programs bring certificates of their own: leave it empty.",
}
_OF_NEW_LISTENERS: Final = {
    "port": "Type the port of a new listener or choose one that is there: not both.",
    "secret": "A listener that is there has its certificates already: leave it empty.",
}
_OVER_ADS: Final = {"ads": {}, "resource_api_version": "V3"}


class Clients(Enum):
    """Who is to reach the service: through an Envoy, or a program with gRPC that has no proxy."""

    ENVOY = "envoy"
    GRPC = "grpc"


@dataclass(frozen=True, slots=True)
class Facts:
    """What somebody typed of a service.

    `name`: that of all that is made. `domains`: the hosts by which it is asked for; of gRPC the targets, each a
    listener of its own. `prefix`: of the paths that it has. `addresses`: where it runs, each as HOST:PORT; or
    `cluster`, one that exists. `port`: on which a new listener takes requests; or `listener`, one that exists: both for
    Envoy. `http2`: the addresses speak HTTP/2, as servers of gRPC do. `secret`: that of the certificate that a new
    listener shows. `timeout`: such as 15s or 250ms; empty: that of the client.
    """

    name: str = ""
    clients: Clients = Clients.ENVOY
    domains: tuple[str, ...] = ()
    prefix: str = "/"
    addresses: tuple[str, ...] = ()
    cluster: str = ""
    port: str = ""
    listener: str = ""
    http2: bool = False
    secret: str = ""
    timeout: str = ""
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exposed:
    """What comes of some facts: `manifests`, none where there are `problems`, each a sentence by the name of its fact.
    `changed`: the resource among them that exists, where one does.
    """

    manifests: tuple[Tree, ...]
    problems: Mapping[str, str]
    changed: Key | None = None


def exposed(facts: Facts, read: Read) -> Exposed:
    """The manifests that expose a service."""
    problems: dict[str, str] = {}
    _name_check(facts, problems)
    _domains_check(facts, problems)
    if problem := _prefix_problem(facts.prefix):
        problems["prefix"] = problem
    seconds = _seconds(facts.timeout, problems)
    upstream = _upstream(facts, read, problems)
    listeners = _listeners(facts, read, problems)
    route, is_new = _route(facts, seconds, read, problems)
    made = [*upstream, *([route] if route is not None and is_new else []), *listeners]
    _taken_check(facts, _names(facts, made), read, problems)
    if problems:
        return Exposed((), problems)
    labelled = [{**each, LABELS_KEY: dict(facts.labels)} if facts.labels else each for each in made]
    if route is None or is_new:
        return Exposed(tuple(labelled), {})
    return Exposed((*labelled, route), {}, (ROUTE.word, str(route["name"])))


def _name_check(facts: Facts, problems: dict[str, str]) -> None:
    if problem := name_problem(facts.name):
        problems["name"] = f"The name {problem}."
    elif len(facts.name) > MAX_NAME_CHARS:
        problems["name"] = f"The name has {len(facts.name)} characters; at most {MAX_NAME_CHARS} are taken here."


def _domains_check(facts: Facts, problems: dict[str, str]) -> None:
    domains = facts.domains
    if not domains:
        problems["domains"] = (
            "Say by which target gRPC programs ask for it." if _is_grpc(facts) else "Say at least one host; * is any."
        )
        return
    if len(domains) > MAX_DOMAINS:
        problems["domains"] = f"{len(domains)} hosts; at most {MAX_DOMAINS} are taken here."
        return
    seen: set[str] = set()
    said = []
    for domain in domains:
        if problem := _domain_problem(domain, star=not _is_grpc(facts)):
            said.append(f"'{domain}' {problem}")
        elif domain.lower() in seen:
            said.append(f"'{domain}' stands there twice.")
        seen.add(domain.lower())
    if said:
        problems["domains"] = " ".join(said)


def _domain_problem(domain: str, *, star: bool) -> str:
    """Why this is no host of a virtual host, as the end of a sentence; empty where it is one."""
    if "://" in domain or "/" in domain:
        return "is no host: leave out scheme and path."
    if len(domain) > _MAX_DOMAIN_CHARS or not domain.isprintable() or any(map(str.isspace, domain)):
        return f"is no host: it has 1 to {_MAX_DOMAIN_CHARS} characters and no blanks."
    if "*" not in domain:
        return ""
    if not star:
        return "has a star: gRPC programs ask for one target each."
    inner = domain[1:] if domain.startswith("*") else domain[:-1]
    ends = domain.startswith("*") or domain.endswith("*")
    return "" if ends and "*" not in inner else "has a star where none may be: *.example.org, pay.* and * are taken."


def _prefix_problem(prefix: str) -> str:
    if not prefix.startswith("/"):
        return "A path prefix begins with /."
    if len(prefix) > _MAX_PREFIX_CHARS or not prefix.isascii() or not prefix.isprintable() or set(" ?#") & set(prefix):
        return f"A path prefix has at most {_MAX_PREFIX_CHARS} ASCII characters, without blanks, ? and #."
    return ""


def _seconds(text: str, problems: dict[str, str]) -> str:
    """A timeout as manifests have it, such as 0.250s; empty where none was typed."""
    if not text:
        return ""
    number, factor = (text[:-2], 1) if text.endswith("ms") else (text.removesuffix("s"), 1_000)
    if number.isascii() and number.isdigit() and len(number) < 10:
        found = int(number) * factor
        if 0 < found <= MAX_TIMEOUT_S * 1_000:
            return f"{found // 1_000}s" if found % 1_000 == 0 else f"{found // 1_000}.{found % 1_000:03}s"
    problems["timeout"] = f"A timeout is such as 15s or 250ms, up to {MAX_TIMEOUT_S}s."
    return ""


def _upstream(facts: Facts, read: Read, problems: dict[str, str]) -> list[Tree]:
    """The cluster and its endpoints; none where one that exists is taken."""
    if facts.cluster:
        if facts.addresses:
            problems["addresses"] = "Type addresses or choose a cluster: not both."
        if read(CLUSTER, facts.cluster) is None:
            problems["cluster"] = f"There is no cluster '{facts.cluster}' here."
        return []
    if problem := _addresses_problem(facts):
        problems["addresses"] = problem
        return []
    places = [place for text in facts.addresses if (place := _address(text)) is not None]
    cluster: Tree = {"@type": CLUSTER.url, "name": facts.name, "connect_timeout": "5s"}
    if facts.http2 and not _is_grpc(facts):
        options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
        explicit: Tree = {"explicit_http_config": {"http2_protocol_options": {}}}
        cluster["typed_extension_protocol_options"] = {options: {"@type": TYPE_URL_PREFIX + options, **explicit}}
    endpoints = [_locality(places)]
    if not _are_ips(places):
        # Endpoints over xDS are IP addresses: who has names asks DNS for them. Of a name that has addresses of both
        # families Envoy would take the IPv6 ones alone, on which many a server does not listen.
        asks = (
            {"type": "LOGICAL_DNS"} if _is_grpc(facts) else {"type": "STRICT_DNS", "dns_lookup_family": "V4_PREFERRED"}
        )
        return [cluster | asks | {"load_assignment": {"cluster_name": facts.name, "endpoints": endpoints}}]
    cluster |= {"type": "EDS", "eds_cluster_config": {"eds_config": _OVER_ADS}}
    return [cluster, {"@type": ENDPOINT.url, "cluster_name": facts.name, "endpoints": endpoints}]


def _addresses_problem(facts: Facts) -> str:
    """What is wrong with the addresses, in sentences; empty where nothing is."""
    addresses = facts.addresses
    if not addresses:
        return "Say where it runs, as HOST:PORT, or choose a cluster that is there."
    if len(addresses) > MAX_ADDRESSES:
        return f"{len(addresses)} addresses; at most {MAX_ADDRESSES} are taken here."
    found = {text: _address(text) for text in addresses}
    said = [
        f"'{text}' is no HOST:PORT, such as 10.0.0.7:8080, [::1]:8080 or pay.internal:8080."
        for text, place in found.items()
        if place is None
    ]
    said += [f"'{text}' stands there twice." for text in found if addresses.count(text) > 1]
    places = [place for place in found.values() if place is not None]
    if _is_grpc(facts) and len(places) > 1 and not _are_ips(places):
        said.append("gRPC programs take one host name alone, or IP addresses.")
    return " ".join(said)


def _address(text: str) -> tuple[str, int] | None:
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if not _is_ip(host):
            return None
    elif ":" in host:
        return None
    if not colon or not _is_port(port) or not host or len(host) > _MAX_DOMAIN_CHARS:
        return None
    named = all(each.isalnum() or each in "-._" for each in host) and host.isascii()
    return (host, int(port)) if named or _is_ip(host) else None


def _locality(places: Sequence[tuple[str, int]]) -> Tree:
    hosts = [
        {
            "endpoint": {"address": {"socket_address": {"address": host, "port_value": port}}},
            "load_balancing_weight": 1,
        }
        for host, port in places
    ]
    # gRPC takes no notice of a locality without a weight.
    return {"locality": {"region": "local"}, "load_balancing_weight": 1, "lb_endpoints": hosts}


def _listeners(facts: Facts, read: Read, problems: dict[str, str]) -> list[Tree]:
    """The new listeners: one for each target of gRPC, one with a port for Envoy, none where there is one already."""
    foreign = _OF_PROXIES if _is_grpc(facts) else _OF_NEW_LISTENERS if facts.listener else {}
    problems |= {fact: said for fact, said in foreign.items() if getattr(facts, fact)}
    if _is_grpc(facts):
        inside = {"api_listener": _manager(facts)}
        return [{"@type": LISTENER.url, "name": domain, "api_listener": inside} for domain in facts.domains]
    if facts.listener:
        return []
    if not _is_port(facts.port):
        problems["port"] = "Type a port from 1 to 65535, or choose a listener that is there."
        return []
    chain_of: Tree = {
        "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": _manager(facts)}]
    }
    if facts.secret:
        if read(SECRET, facts.secret) is None:
            problems["secret"] = f"There is no secret '{facts.secret}' here."
        chain_of["transport_socket"] = _tls(facts.secret)
    address = {"socket_address": {"address": "0.0.0.0", "port_value": int(facts.port)}}  # noqa: S104 - it serves others
    return [{"@type": LISTENER.url, "name": facts.name, "address": address, "filter_chains": [chain_of]}]


def _manager(facts: Facts) -> Tree:
    return {
        "@type": TYPE_URL_PREFIX + _HTTP,
        "stat_prefix": facts.name,
        "rds": {"route_config_name": facts.name, "config_source": _OVER_ADS},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": TYPE_URL_PREFIX + _ROUTER}}],
    }


def _tls(secret: str) -> Tree:
    context = "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
    shown = [{"name": secret, "sds_config": _OVER_ADS}]
    common = {"alpn_protocols": ["h2", "http/1.1"], "tls_certificate_sds_secret_configs": shown}
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {"@type": TYPE_URL_PREFIX + context, "common_tls_context": common},
    }


def _route(facts: Facts, seconds: str, read: Read, problems: dict[str, str]) -> tuple[Tree | None, bool]:
    """The route configuration, and whether it is new; that of an existing listener gets a virtual host more."""
    action: Tree = {"cluster": facts.cluster or facts.name}
    if seconds:
        # gRPC reads no other timeout of a route than this one (gRFC A31).
        action |= {"max_stream_duration": {"max_stream_duration": seconds}} if _is_grpc(facts) else {"timeout": seconds}
    host: Tree = {
        "name": facts.name,
        "domains": list(facts.domains),
        "routes": [{"match": {"prefix": facts.prefix}, "route": action}],
    }
    new: Tree = {"@type": ROUTE.url, "name": facts.name, "virtual_hosts": [host]}
    if _is_grpc(facts) or not facts.listener:
        if not _is_grpc(facts) and not any(":" in domain for domain in facts.domains):
            new["ignore_port_in_host_matching"] = True  # a client that asks for host:port means the host
        return new, True
    listener = read(LISTENER, facts.listener)
    if listener is None:
        problems["listener"] = f"There is no listener '{facts.listener}' here."
        return None, True
    names = sorted(_route_names(listener))
    if len(names) != 1 or "api_listener" in listener:
        problems["listener"] = (
            "It is one of gRPC programs."
            if "api_listener" in listener
            else "It takes its routes from several route configurations: edit the one that you mean."
            if names
            else "It takes its routes from no route configuration of its own name: edit the listener."
        )
        return None, True
    stored = read(ROUTE, names[0])
    if stored is None:
        return {**new, "name": names[0]}, True
    hosts = stored.get("virtual_hosts")
    others = [each for each in hosts if isinstance(each, Mapping)] if isinstance(hosts, list) else []
    _beside_check(facts, names[0], others, problems)
    return {**stored, "virtual_hosts": [*others, host]}, False


def _beside_check(facts: Facts, route: str, others: Sequence[Mapping[str, object]], problems: dict[str, str]) -> None:
    """What of the service the route configuration has already."""
    if any(each.get("name") == facts.name for each in others):
        problems["name"] = f"The route '{route}' has a virtual host '{facts.name}' already."
    owners = {str(domain).lower(): each.get("name", "") for each in others for domain in _list_of(each.get("domains"))}
    said = [
        f"'{domain}' belongs to the virtual host '{owners[domain.lower()]}' of the route '{route}': edit it there."
        for domain in facts.domains
        if domain.lower() in owners
    ]
    if said:
        problems.setdefault("domains", " ".join(said))


def _route_names(listener: Mapping[str, object]) -> set[str]:
    """The route configurations from which a listener takes its routes."""
    chains = [*_list_of(listener.get("filter_chains")), listener.get("default_filter_chain")]
    filters = chain.from_iterable(_list_of(each.get("filters")) for each in chains if isinstance(each, Mapping))
    found = set()
    for each in filters:
        config = each.get("typed_config") if isinstance(each, Mapping) else None
        rds = config.get("rds") if isinstance(config, Mapping) else None
        if isinstance(rds, Mapping) and rds.get("route_config_name"):
            found.add(str(rds["route_config_name"]))
    return found


def _names(facts: Facts, made: Sequence[Tree]) -> list[tuple[ResourceType, str]]:
    """What would be made, also where something else is wrong with it yet."""
    kinds = {each.url: each for each in (CLUSTER, ENDPOINT, ROUTE, LISTENER)}
    found = [(kind := kinds[tree["@type"]], str(tree[kind.name_field])) for tree in made]
    words = {kind for kind, _ in found}
    if not facts.cluster and CLUSTER not in words:
        found += [(CLUSTER, facts.name), (ENDPOINT, facts.name)]
    if not facts.listener and not _is_grpc(facts) and LISTENER not in words:
        found.append((LISTENER, facts.name))
    return found


def _taken_check(facts: Facts, names: Sequence[tuple[ResourceType, str]], read: Read, problems: dict[str, str]) -> None:
    """Nothing that exists is written over."""
    taken: dict[str, list[str]] = {}
    for kind, name in names:
        if not name_problem(name) and read(kind, name) is not None:
            fact = "domains" if kind is LISTENER and _is_grpc(facts) else "name"
            taken.setdefault(fact, []).append(f"{kind.word} '{name}'")
    for fact, some in taken.items():
        verb = "is" if len(some) == 1 else "are"
        problems.setdefault(fact, f"The {', the '.join(some)} {verb} there already.")


def _list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _is_grpc(facts: Facts) -> bool:
    return facts.clients is Clients.GRPC


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65_536


def _are_ips(places: Sequence[tuple[str, int]]) -> bool:
    return all(_is_ip(host) for host, _ in places)


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
