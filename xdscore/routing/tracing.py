"""The way of a request from a listener to endpoints, one choice after the other.

A generator, because each choice says what is needed next: it yields keys of resources and is sent what the client has
of each.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Final

from xdscore.resource_types import LISTENER, ROUTE
from xdscore.routing.chains import ChainChoice, chain_name, chosen_chain, listener_ports, port_of
from xdscore.routing.clusters import Asking, asked, clusters_reached
from xdscore.routing.routes import host_chosen, route_taken
from xdscore.routing.seen import Doubt, Early, Seen, normalised, seen_of
from xdscore.routing.texts import quoted
from xdscore.routing.trail import MAX_LOST, Ended, Trail
from xdscore.routing.values import Answer, Given, Key, Lost, Place, Request, Traced
from xdscore.schema.types_registry import message_name
from xdscore.schema.walk import AnyMessage, unpack

MAX_LISTENERS: Final = 500
"""Of more listeners none is chosen by its port; the request then has to say which one it comes to."""
_MANAGER: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_TCP_PROXY: Final = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
_HTTP: Final = "envoy.extensions.filters.http."
# They look on, or touch bodies alone. Any other may answer by itself, or change what routes are chosen by.
_LOOK_ON: Final = frozenset(
    {
        *(_HTTP + "router.v3.Router", _HTTP + "compressor.v3.Compressor", _HTTP + "decompressor.v3.Decompressor"),
        *(
            _HTTP + "buffer.v3.Buffer",
            _HTTP + "grpc_stats.v3.FilterConfig",
            _HTTP + "bandwidth_limit.v3.BandwidthLimit",
        ),
    }
)


def traced(
    request: Request, *, listener: str = "", listeners: Sequence[str] = (), tells_lost: bool = True
) -> Generator[Sequence[Key], Mapping[Key, Given], Traced]:
    """Where a request goes: a generator that yields the resources which it needs, is sent what the client has of each,
    and returns the answer. `listener`: the listener that the request comes to; empty: the one of `listeners`, which are
    all that there are, whose name is the authority or whose port it is. `tells_lost`: also say why others lost.
    """
    trail = Trail(tells_lost=tells_lost)
    way = _way(trail, request, listener, listeners)
    try:
        wanted = next(way)
        while True:
            given = yield wanted
            trail.given(given)
            wanted = way.send(given)
    except StopIteration:
        return trail.traced(Answer.ROUTED)
    except Ended as end:
        return trail.traced(end.answer)


def _way(trail: Trail, request: Request, listener: str, listeners: Sequence[str]) -> Asking[None]:
    name, message = yield from _listener(trail, request, listener, listeners)
    trail.listener = name
    place = Place((LISTENER.word, name))
    grpc = message.HasField("api_listener") and not message.filter_chains
    seen = seen_of(request, grpc=grpc)
    if grpc:
        manager, at = _api_manager(trail, message, place)
    else:
        manager, at = _manager(trail, message, place, seen, port_of(request.authority, request.scheme))
        seen = _normalised(trail, seen, manager, message, at)
    configuration, routes_at = yield from _configuration(trail, manager, at)
    trail.route = configuration.name
    host, host_at = yield from host_chosen(trail, configuration, routes_at, seen)
    taken = route_taken(trail, configuration, host, host_at, seen)
    yield from clusters_reached(trail, taken)


def _listener(
    trail: Trail, request: Request, listener: str, listeners: Sequence[str]
) -> Asking[tuple[str, AnyMessage]]:
    if listener:
        found = yield from asked(trail, "listener", (LISTENER.word, listener), f"listener {quoted(listener)}")
        trail.chose("listener", f"The request comes to listener {quoted(listener)}.", Place((LISTENER.word, listener)))
        return listener, found
    key = (LISTENER.word, request.authority)
    found = (yield (key,))[key].message
    if found is not None and found.HasField("api_listener"):
        trail.chose("listener", f"gRPC asks for the listener {quoted(request.authority)}, its target.", Place(key))
        return request.authority, found
    if len(listeners) > MAX_LISTENERS:
        said = f"There are {len(listeners)} listeners. Say to which one the request comes."
        trail.give_up("listener", said)
    keys = [(LISTENER.word, name) for name in listeners]
    given = (yield keys) if keys else {}
    held = {key[1]: given[key].message for key in keys if given[key].message is not None}
    return _by_port(trail, request, held)


def _by_port(trail: Trail, request: Request, held: Mapping[str, AnyMessage]) -> tuple[str, AnyMessage]:
    """The listener that has the port of the request, or the only one that there is: what stands before it may have
    another port.
    """
    port = port_of(request.authority, request.scheme)
    proxies = {name: each for name, each in held.items() if each.filter_chains or each.HasField("default_filter_chain")}
    fitting = [name for name, each in proxies.items() if port in listener_ports(each)]
    lost = [
        Lost(name, f"has {_ports_said(each)}, not port {port}", Place((LISTENER.word, name)).at("address"))
        for name, each in proxies.items()
        if name not in fitting
    ][:MAX_LOST]
    if not proxies:
        trail.refuse("listener", f"There is no listener for it, and no gRPC target {quoted(request.authority)}.")
    if len(fitting) > 1 or (not fitting and len(proxies) > 1):
        some = f"{len(fitting)} listeners have" if fitting else "No listener has"
        trail.give_up("listener", f"{some} port {port}. Say to which one the request comes.", None, lost)
    (name,) = fitting or proxies
    said = f"Listener {quoted(name)} has port {port}."
    if not fitting:
        said = f"Listener {quoted(name)} is the only one; it has {_ports_said(proxies[name])}, not port {port}."
        lost = []
    trail.chose("listener", said, Place((LISTENER.word, name)), lost)
    return name, proxies[name]


def _ports_said(listener: AnyMessage) -> str:
    ports = listener_ports(listener)
    return f"port {', '.join(map(str, ports))}" if ports else "no port"


def _api_manager(trail: Trail, listener: AnyMessage, place: Place) -> tuple[AnyMessage, Place]:
    at = place.at("api_listener", "api_listener")
    manager = trail.made(at, lambda: unpack(listener.api_listener.api_listener))
    if manager is None or manager.DESCRIPTOR.full_name != _MANAGER:
        trail.refuse("filter chain", "The API listener has no HTTP connection manager, so that gRPC refuses it.", at)
    trail.chose("filter chain", "It is an API listener, which has no filter chains: gRPC chooses by itself.", at)
    return manager, at


def _manager(trail: Trail, listener: AnyMessage, place: Place, seen: Seen, port: int) -> tuple[AnyMessage, Place]:
    """The connection manager of the filter chain that takes the request, with its place."""
    for field in ("filter_chain_matcher", "fcds_config"):
        if listener.HasField(field):
            trail.unjudged(place.at(field))
            trail.give_up("filter chain", f"The filter chain is chosen by '{field}', which is not judged.", place)
    ports = listener_ports(listener)
    chain, at = _chain(trail, listener, place, chosen_chain(listener, seen, _dialled(listener, ports, port), place))
    if not chain.filters:
        trail.refuse("filter chain", "It has no filters, so that the connection is closed.", at)
    last = len(chain.filters) - 1
    at = at.at("filters", last, "typed_config")
    found = trail.made(at, lambda: unpack(chain.filters[last].typed_config))
    if found is None or found.DESCRIPTOR.full_name != _MANAGER:
        trail.unjudged(at)
        passes = found is not None and found.DESCRIPTOR.full_name == _TCP_PROXY
        what = "passes bytes on, whatever the request" if passes else "is no HTTP connection manager"
        name = quoted(chain.filters[last].name)
        trail.give_up("filter chain", f"Its last filter {name} {what}; no route is chosen.", at)
    before = [each.name for each in chain.filters[:last]]
    if before:
        said = f"Network filters may close the connection first: {', '.join(map(quoted, before))}."
        trail.chose("network filters", said, at)
    _filters(trail, found, at)
    return found, at


def _dialled(listener: AnyMessage, ports: Sequence[int], port: int) -> int:
    """The port by which filter chains are chosen: the listener's, unless it takes connections that were meant for
    others.
    """
    return port if listener.use_original_dst.value or not ports or port in ports else ports[0]


def _chain(trail: Trail, listener: AnyMessage, place: Place, choice: ChainChoice) -> tuple[AnyMessage, Place]:
    lost, more = choice.lost[:MAX_LOST], max(len(choice.lost) - MAX_LOST, 0)
    if choice.doubt is not None:
        trail.unjudged(choice.doubt)
        said = f"Which filter chain it is depends on '{choice.doubt.path[-1]}', which a request does not say."
        trail.give_up("filter chain", said, choice.doubt, lost, more)
    if choice.index is not None:
        chain, at = listener.filter_chains[choice.index], place.at("filter_chains", choice.index)
        trail.filter_chain = chain_name(chain, choice.index)
        trail.chose("filter chain", f"Filter chain {quoted(trail.filter_chain)} takes it.", at, lost, more)
    elif listener.HasField("default_filter_chain"):
        chain, at = listener.default_filter_chain, place.at("default_filter_chain")
        trail.filter_chain = chain.name or "default_filter_chain"
        trail.chose("filter chain", "No filter chain fits, so that the default one takes it.", at, lost, more)
    else:
        said = "No filter chain fits and there is no default one, so that the connection is closed."
        trail.refuse("filter chain", said, place.at("filter_chains"), lost, more)
    return chain, at


def _filters(trail: Trail, manager: AnyMessage, at: Place) -> None:
    """Name the filters that may answer the request themselves or change what its route is chosen by."""
    for field in ("early_header_mutation_extensions", "original_ip_detection_extensions"):
        if getattr(manager, field):
            trail.unjudged(at.at(field))
    touching = [
        each.name
        for each in manager.http_filters
        if not each.disabled and message_name(each.typed_config.type_url) not in _LOOK_ON
    ]
    if touching:
        names = ", ".join(map(quoted, touching))
        said = f"Filters may answer or change the request before it is routed, in this order: {names}."
        trail.chose("filters", said, at.at("http_filters"))


def _normalised(trail: Trail, seen: Seen, manager: AnyMessage, listener: AnyMessage, at: Place) -> Seen:
    ports = listener_ports(listener)
    found = normalised(seen, manager, ports[0] if ports else 0)
    if isinstance(found, Doubt):
        trail.unjudged(at.at(found.field))
        trail.give_up("request", found.said, at.at(found.field))
    if isinstance(found, Early):
        trail.status = found.status
        if not found.path:
            trail.refuse("request", found.said, at)
        trail.location = found.path
        trail.chose("request", found.said, at.at("path_with_escaped_slashes_action"))
        raise Ended(Answer.REDIRECT)
    if (found.host, found.path) != (seen.host, seen.path):
        said = f"The connection manager reads it as {quoted(found.path)} at {quoted(found.host)}."
        trail.chose("request", said, at)
    return found


def _configuration(trail: Trail, manager: AnyMessage, at: Place) -> Asking[tuple[AnyMessage, Place]]:
    match manager.WhichOneof("route_specifier"):
        case "route_config":
            trail.chose("route configuration", "It is part of the listener.", at.at("route_config"))
            return manager.route_config, at.at("route_config")
        case "rds":
            name = manager.rds.route_config_name or ""
            what = f"route configuration {quoted(name)}"
            trail.route = name
            found = yield from asked(trail, "route configuration", (ROUTE.word, name), what)
            trail.chose("route configuration", f"The listener names {what}.", at.at("rds", "route_config_name"))
            return found, Place((ROUTE.word, name))
        case kind:
            trail.unjudged(at.at(kind or "route_specifier"))
            said = "The route configuration is chosen by the request (scoped routes), which is not judged."
            trail.give_up("route configuration", said, at.at(kind or "route_specifier"))
