"""From the clusters that a route names to their endpoints, and how resources are asked for on the way."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from xdscore.resource_types import CLUSTER, ENDPOINT
from xdscore.routing.actions import Towards
from xdscore.routing.endpoints import MAX_ENDPOINTS, endpoints_of, endpoints_said, unread_localities
from xdscore.routing.texts import quoted
from xdscore.routing.trail import Trail
from xdscore.routing.values import ClusterShare, Endpoint, Given, Key, Place
from xdscore.schema.walk import AnyMessage

T = TypeVar("T")
Asking = Generator[Sequence[Key], Mapping[Key, Given], T]
"""A step that yields the names that it needs, and is sent what the client has of each."""
_MAX_CLUSTERS: Final = 100
_RESOLVED: Final = "Its endpoints are names or addresses that the proxy resolves itself. "


@dataclass(frozen=True, slots=True)
class Taken:
    """The clusters that a request goes to, each with the field that names it and the status of the answer where there
    is no such cluster; what else the route says; and its place.
    """

    towards: tuple[tuple[Towards, Place, int], ...]
    said: tuple[str, ...]
    place: Place


def asked(trail: Trail, title: str, key: Key, what: str) -> Asking[AnyMessage]:
    """The message of a resource that the way needs. Ends the trail where the client has none."""
    given = (yield (key,))[key]
    if given.message is not None:
        return given.message
    said = f"There is no {what} for it: {given.said}"
    if given.known:
        trail.refuse(title, said, Place(key))
    trail.give_up(title, said, Place(key))


def clusters_reached(trail: Trail, taken: Taken) -> Asking[None]:
    """Note the clusters that a request goes to, and their endpoints. Ends the trail where it reaches none of them."""
    shares: dict[str, float] = {}
    named: dict[str, Place] = {}
    for one, place, _ in taken.towards:
        shares[one.cluster] = shares.get(one.cluster, 0.0) + one.percent
        named.setdefault(one.cluster, place)
    trail.shares = tuple(ClusterShare(name, round(value, 4), named[name]) for name, value in shares.items())
    names = list(shares)[:_MAX_CLUSTERS]
    keys = [(CLUSTER.word, name) for name in names]
    given = yield keys
    statuses = {one.cluster: (place, status) for one, place, status in taken.towards}
    gone = [key for key in keys if given[key].message is None]
    if gone and len(gone) == len(shares):
        place, trail.status = statuses[gone[0][1]]
        first = given[gone[0]]
        said = f"It goes to cluster {quoted(gone[0][1])}, of which there is none: {first.said} "
        said += f"Unless the proxy's own bootstrap has it, the answer is {trail.status}."
        if first.known:
            trail.refuse("cluster", said, place)
        trail.give_up("cluster", said, place)
    parts = [f"{quoted(each.cluster)} ({each.percent:g} %)" for each in trail.shares]
    sentences = [f"It goes to {', '.join(parts)}."]
    sentences += (f"There is no cluster {quoted(key[1])}: {given[key].said}" for key in gone)
    trail.chose("cluster", " ".join((*sentences, *taken.said)), taken.towards[0][1])
    found: list[Endpoint] = []
    for key in keys:
        message = given[key].message
        if message is not None:
            found += yield from _endpoints(trail, message, Place(key))
    trail.endpoints = tuple(found[:MAX_ENDPOINTS])


def _endpoints(trail: Trail, cluster: AnyMessage, place: Place) -> Asking[tuple[Endpoint, ...]]:
    title = f"endpoints of {cluster.name}"
    if cluster.HasField("cluster_type"):
        trail.unjudged(place.at("cluster_type"))
        trail.chose(title, "An extension finds its endpoints, which is not judged.", place.at("cluster_type"))
        return ()
    if cluster.type == cluster.ORIGINAL_DST:
        trail.chose(title, "It goes on to the address that it was meant for (ORIGINAL_DST).", place.at("type"))
        return ()
    if cluster.type != cluster.EDS:
        resolved = "" if cluster.type == cluster.STATIC else _RESOLVED
        return _noted(trail, title, cluster.load_assignment, place.at("load_assignment"), resolved)
    name = cluster.eds_cluster_config.service_name or cluster.name
    key = (ENDPOINT.word, name)
    given = (yield (key,))[key]
    if given.message is None:
        said = f"There are no endpoints {quoted(name)}: {given.said}"
        (trail.refuse if given.known else trail.give_up)(title, said, Place(key))
    return _noted(trail, title, given.message, Place(key), "")


def _noted(trail: Trail, title: str, assignment: AnyMessage, place: Place, before: str) -> tuple[Endpoint, ...]:
    for index in unread_localities(assignment):
        trail.unjudged(place.at("endpoints", index, "leds_cluster_locality_config"))
    if assignment.policy.drop_overloads:
        before = f"{before}Some requests are dropped by 'drop_overloads'. "
    trail.chose(title, before + endpoints_said(assignment), place)
    return endpoints_of(assignment, place)
