"""Where a request goes, in one sentence and as the stations of its way. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xdscore.routing.values import Answer, Rung, State, Traced

_STATIONS: Final = (
    *("listener", "filter chain", "route configuration", "virtual host", "route"),
    *("cluster", "endpoints"),
)
_MAX_NAMED: Final = 3  # clusters


@dataclass(frozen=True, slots=True)
class Station:
    """A station on the way of a request. `name`: what was chosen there, empty where nothing was. `state`: how the
    choice came out; None: the request does not come so far. `rung`: the position of the choice among the rungs.
    """

    title: str
    name: str
    state: State | None
    rung: int | None = None


def headline(found: Traced) -> str:
    """The answer in a few words."""
    match found.answer:
        case Answer.ROUTED:
            return f"It goes to cluster{'s' if len(found.shares) > 1 else ''} {_clusters(found)}"
        case Answer.REDIRECT:
            return f"{found.status}: it is redirected"
        case Answer.DIRECT:
            return f"{found.status}: the route answers itself"
        case Answer.REFUSED:
            return f"{found.status}: nothing takes it" if found.status else "Nothing takes it"
        case Answer.UNKNOWN:
            return "That cannot be said"


def sentence(found: Traced) -> str:
    """The answer in a sentence or two: the last choice, or by which route it goes on, and to which endpoints."""
    last = found.rungs[-1]
    if found.answer is not Answer.ROUTED:
        return last.text
    by = f"Route {found.route_index} of virtual host '{found.virtual_host}' takes it."
    return f"{by} {last.text}" if last.title.startswith("endpoints") and len(found.shares) == 1 else by


def stations(found: Traced) -> tuple[Station, ...]:
    """The way, from the listener on: what was chosen, where it ends, and what the request does not reach."""
    by_title: dict[str, int] = {}
    for position, rung in enumerate(found.rungs):
        by_title.setdefault(_station(rung), position)
    names = _names(found)
    last, way = found.rungs[-1], list[Station]()
    for title in _STATIONS:
        if title in by_title:
            position = by_title[title]
            way.append(Station(title, names[title], found.rungs[position].state, position))
    way += _aside(found, last)
    if found.answer in {Answer.REFUSED, Answer.UNKNOWN}:
        passed = {each.title for each in way}
        furthest = max((_STATIONS.index(each) for each in passed if each in _STATIONS), default=-1)
        way += (Station(title, "", None) for title in _STATIONS[furthest + 1 :])
    return tuple(way)


def _aside(found: Traced, last: Rung) -> Iterator[Station]:
    """Where the way ends at something that is no station of others, such as a route that answers itself."""
    if _station(last) not in _STATIONS:
        name = " ".join(filter(None, (str(found.status or ""), found.location)))
        yield Station("answer", name, last.state, len(found.rungs) - 1)


def _station(rung: Rung) -> str:
    return "endpoints" if rung.title.startswith("endpoints of ") else rung.title


def _names(found: Traced) -> dict[str, str]:
    count = len(found.endpoints)
    return {
        "listener": found.listener,
        "filter chain": found.filter_chain,
        "route configuration": found.route,
        "virtual host": found.virtual_host,
        "route": "" if found.route_index is None else f"route {found.route_index}",
        "cluster": _clusters(found) if found.shares else "",
        "endpoints": f"{count} address{'' if count == 1 else 'es'}",
    }


def _clusters(found: Traced) -> str:
    names = [each.cluster for each in found.shares[:_MAX_NAMED]]
    more = len(found.shares) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
