"""Virtual host and route: who takes the request in a route configuration, and why the others do not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Never

from xdscore.resource_types import VIRTUAL_HOST
from xdscore.routing.actions import Towards, also_said, https_location, not_found_status, redirected, towards
from xdscore.routing.clusters import Asking, Taken
from xdscore.routing.domains import best_domain, host_for_domains, hosts_lost
from xdscore.routing.matching import matched_path, route_miss
from xdscore.routing.seen import Seen, set_by_proxy
from xdscore.routing.shares import EVERYTHING, fraction, percent
from xdscore.routing.sieve import Sieve
from xdscore.routing.texts import quoted
from xdscore.routing.trail import MAX_LOST, Ended, Trail
from xdscore.routing.values import Answer, Lost, Miss, Place
from xdscore.schema.walk import AnyMessage

_EXACT = 0  # the first of the kinds of domains


def host_chosen(trail: Trail, configuration: AnyMessage, at: Place, seen: Seen) -> Asking[tuple[AnyMessage, Place]]:
    """The virtual host that takes the request, with its place. `at`: of the route configuration."""
    authority = _authority(trail, configuration, at, seen)
    hosts: Sequence[AnyMessage] = configuration.virtual_hosts
    best = best_domain(hosts, authority)
    if configuration.HasField("vhds") and (best is None or best.rank[0] != _EXACT):
        found = yield from _on_demand(trail, configuration, at, authority)
        return found
    losers = hosts_lost(hosts, authority, best, at.at("virtual_hosts")) if trail.tells_lost else ()
    lost = list(losers)[:MAX_LOST]
    more = max(len(hosts) - (best is not None) - MAX_LOST, 0)
    if best is None:
        trail.status = 404
        what = "gRPC fails the call (UNAVAILABLE)" if seen.grpc else "the answer is 404"
        said = f"No virtual host has a domain for {quoted(authority)}, so that {what}."
        trail.refuse("virtual host", said, at.at("virtual_hosts"), lost, more)
    host, host_at = hosts[best.index], at.at("virtual_hosts", best.index)
    said = f"Virtual host {quoted(host.name)} takes {quoted(authority)} by its domain {quoted(best.text)}."
    trail.virtual_host = host.name
    trail.chose("virtual host", said, host_at.at("domains", best.number), lost, more)
    return host, host_at


def _authority(trail: Trail, configuration: AnyMessage, at: Place, seen: Seen) -> str:
    name = "" if seen.grpc else configuration.vhost_header
    if not name:
        return host_for_domains(seen.host, configuration)
    value = seen.of(name)
    if value is None and not set_by_proxy(name):
        trail.status = 404
        said = f"The virtual host is chosen by the header {quoted(name)}, which it does not have: the answer is 404."
        trail.refuse("virtual host", said, at.at("vhost_header"))
    if value is None or set_by_proxy(name):
        trail.unjudged(at.at("vhost_header"))
        said = f"The virtual host is chosen by the header {quoted(name)}, which the request alone does not say."
        trail.give_up("virtual host", said, at.at("vhost_header"))
    return host_for_domains(value, configuration)


def _on_demand(trail: Trail, configuration: AnyMessage, at: Place, authority: str) -> Asking[tuple[AnyMessage, Place]]:
    """The virtual host that comes by VHDS for the very authority; another may come for it, too, by its other domains,
    and that is not judged.
    """
    key = (VIRTUAL_HOST.word, f"{configuration.name}/{authority}")
    found = (yield (key,))[key].message
    if found is None or authority.lower() not in {each.lower() for each in found.domains}:
        trail.unjudged(at.at("vhds"))
        said = (
            f"The virtual host for {quoted(authority)} comes on demand (VHDS), and none has its name {quoted(key[1])}."
        )
        trail.give_up("virtual host", said, at.at("vhds"))
    trail.virtual_host = found.name
    said = f"Virtual host {quoted(found.name)} comes on demand (VHDS) for {quoted(authority)}."
    trail.chose("virtual host", said, Place(key))
    return found, Place(key)


@dataclass(slots=True)
class _Taking:
    """A route that takes the request, and of all requests like it which share."""

    index: int
    route: AnyMessage
    share: int


def _none_of(host: AnyMessage) -> str:
    of = f"of virtual host {quoted(host.name)}"
    return f"None of the {len(host.routes)} routes {of}" if len(host.routes) > 1 else f"No route {of}"


def route_taken(trail: Trail, configuration: AnyMessage, host: AnyMessage, host_at: Place, seen: Seen) -> Taken:
    """The clusters that the first route which takes the request sends it to. Ends the trail where there is none."""
    _ask_for_tls(trail, host, host_at, seen)
    taking, left, lost, more = _takers(trail, configuration, host, host_at, seen)
    if not taking:
        trail.status = 404
        what = "gRPC fails the call (UNAVAILABLE)" if seen.grpc else "the answer is 404"
        trail.refuse("route", f"{_none_of(host)} takes it, so that {what}.", host_at.at("routes"), lost, more)
    main = max(taking, key=lambda each: each.share.bit_count())
    trail.route_index, trail.route_name = main.index, main.route.name
    place = host_at.at("routes", main.index)
    trail.chose("route", _taking_said(taking, main, left), place.at("match"), lost, more)
    found: list[tuple[Towards, Place, int]] = []
    for each in sorted(taking, key=lambda each: each is not main):
        at = host_at.at("routes", each.index)
        kind = each.route.WhichOneof("action")
        if kind == "route":
            clusters = towards(each.route.route, seen, each.share)
            if isinstance(clusters, Miss):
                _no_cluster(trail, clusters, at)
            status = not_found_status(each.route.route)
            found += ((one, at.at("route", *one.path), status) for one in clusters)
        elif each is main:
            _ends_here(trail, each.route, kind, at, seen)
    return Taken(tuple(found), tuple(also_said(main.route, host, configuration, seen)), place.at("route"))


def _takers(
    trail: Trail, configuration: AnyMessage, host: AnyMessage, host_at: Place, seen: Seen
) -> tuple[list[_Taking], int, list[Lost], int]:
    """The routes that take the request, first come first served, the share that is left to none of them, and why the
    routes before them, or between them, do not.
    """
    if host.HasField("matcher") and not seen.grpc:
        trail.unjudged(host_at.at("matcher"))
        trail.give_up("route", "The route is chosen by a matcher tree, which is not judged.", host_at.at("matcher"))
    taking: list[_Taking] = []
    lost: list[Lost] = []
    left, end = EVERYTHING, len(host.routes)
    path = matched_path(seen, configuration)
    for index in _judged(trail, host, host_at, seen, path, lost):
        route = host.routes[index]
        missed = route_miss(route.match, seen, path)
        if missed is None:
            share = left
            if route.match.HasField("runtime_fraction"):
                share &= fraction(route.match.runtime_fraction.default_value)
                _note_runtime(trail, route, host_at.at("routes", index))
            if share:
                taking.append(_Taking(index, route, share))
                left &= ~share
                if not left:
                    end = index + 1
                    break
                continue
            missed = Miss("takes only requests that routes before it take", ("runtime_fraction",))
        if missed.path[0] == "runtime_fraction":
            _note_runtime(trail, route, host_at.at("routes", index))
        if not missed.judged:
            _in_doubt(trail, missed, _route_name(index, route), host_at.at("routes", index), lost, index - len(taking))
        if trail.tells_lost and len(lost) < MAX_LOST:
            place = host_at.at("routes", index, "match", *missed.path)
            lost.append(Lost(_route_name(index, route), missed.said, place))
    return taking, left, lost, max(end - len(taking) - MAX_LOST, 0)


def _judged(
    trail: Trail, host: AnyMessage, host_at: Place, seen: Seen, path: str, lost: Sequence[Lost]
) -> Iterator[int]:
    """The numbers of the routes that have to be judged. Once as many are in `lost` as are told, or where none is told,
    those that certainly do not take the request are left out.
    """
    index, end = 0, len(host.routes)
    while index < end and trail.tells_lost and len(lost) < MAX_LOST:
        yield index
        index += 1
    if index == end:
        return
    sieve = trail.made(host_at, lambda: Sieve(host.routes))
    yield from sieve.left(index, seen, path)


def _in_doubt(trail: Trail, missed: Miss, name: str, at: Place, lost: Sequence[Lost], count: int) -> Never:
    """End the trail at a route that takes the request or not by what is not judged. `count`: of those before it."""
    where = at.at("match", *missed.path)
    trail.unjudged(where)
    said = f"Route {name} may take it: it {missed.said}, which is not judged."
    trail.give_up("route", said, where, lost, max(count - MAX_LOST, 0))


def _note_runtime(trail: Trail, route: AnyMessage, at: Place) -> None:
    """A runtime that has a fraction's key decides; its default stands for all others."""
    if route.match.runtime_fraction.runtime_key:
        trail.unjudged(at.at("match", "runtime_fraction", "runtime_key"))


def _route_name(index: int, route: AnyMessage) -> str:
    return f"{index} {quoted(route.name)}" if route.name else str(index)


def _taking_said(taking: Sequence[_Taking], main: _Taking, left: int) -> str:
    if len(taking) == 1 and not left:
        return f"Route {_route_name(main.index, main.route)} is the first that takes it."
    parts = [f"route {_route_name(each.index, each.route)} takes {percent(each.share):g} %" for each in taking]
    if left:
        parts.append(f"{percent(left):g} % are taken by none and answered 404")
    return f"Of requests like this {', '.join(parts)}. What follows is of route {main.index}."


def _no_cluster(trail: Trail, missed: Miss, at: Place) -> Never:
    where = at.at("route", *missed.path)
    if missed.judged:
        trail.status = 503
        trail.refuse("cluster", f"The route {missed.said}, so that the answer is 503.", where)
    trail.unjudged(where)
    trail.give_up("cluster", f"The route {missed.said}; that is not judged.", where)


def _ends_here(trail: Trail, route: AnyMessage, kind: str | None, at: Place, seen: Seen) -> None:
    """End the trail with what a route does that sends to no cluster."""
    if seen.grpc:
        said = "The route sends to no cluster, so that gRPC fails the call (UNAVAILABLE)."
        trail.refuse("action", said, at.at(kind or "route"))
    if kind == "redirect":
        trail.status, trail.location = redirected(route, seen)
        said = f"The route answers {trail.status}: go to {quoted(trail.location)}."
        trail.chose("action", said, at.at(kind))
        raise Ended(Answer.REDIRECT)
    if kind == "direct_response":
        trail.status = route.direct_response.status
        trail.chose("action", f"The route answers {trail.status} itself.", at.at(kind))
        raise Ended(Answer.DIRECT)
    trail.unjudged(at.at(kind or "action"))
    trail.give_up("action", "What becomes of it is decided by what is not judged.", at.at(kind or "action"))


def _ask_for_tls(trail: Trail, host: AnyMessage, host_at: Place, seen: Seen) -> None:
    """End the trail where the virtual host answers plain text with a redirect to TLS."""
    if seen.grpc or host.require_tls == host.NONE or seen.headers[":scheme"] == "https":
        return
    at = host_at.at("require_tls")
    if host.require_tls == host.EXTERNAL_ONLY:
        trail.unjudged(at)
        said = "The virtual host wants TLS of callers from outside, and a request does not say where it is from."
        trail.give_up("virtual host", said, at)
    trail.status, trail.location = 301, https_location(seen)
    trail.chose("action", f"The virtual host wants TLS, and answers 301: go to {quoted(trail.location)}.", at)
    raise Ended(Answer.REDIRECT)
