"""Reads a graph: of a whole environment, of what surrounds some resources, or of what one client sees. Values only.

An environment holds more than anybody looks at, so a graph is bounded, and says how much is not in it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Count

from controlplane.catalog.links import Key, Link, links_all, links_in, links_out, users_counted
from controlplane.catalog.models import Resource
from controlplane.catalog.references import XDSTP, Authorities
from controlplane.clients.coverage import asking_counted
from controlplane.clients.filtering import ClientFilter
from controlplane.clients.selectors import ClientSummary, client_get, client_list
from controlplane.common.errors import NotFound
from controlplane.graph.asking import sight_of
from controlplane.graph.model import Edge, Graph, Node, Sight, node_state
from controlplane.status.selectors import statuses_in_trouble, statuses_named
from controlplane.status.values import Status
from xdscore.codes import shown
from xdscore.resource_types import ResourceType

MAX_NODES: Final = 12_000
"""Room for an environment of ten thousand resources, and for the names that are missing there."""
DEFAULT_NODES: Final = 1_000
MAX_DEPTH: Final = 8
"""The longest chain of types that Envoy knows has five links; clusters and extensions may refer to their own kind."""
_MAX_READ: Final = 20_000  # references of one step
# Of so many resources each is asked how it stands and what it refers to; of more, every reference is read, and what is
# in trouble.
_MAX_NAMED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of an environment that a graph shows: everything, or the resources that fit with all they need and all
    that needs them, `depth` references far.

    `kind`, `name`: only the resources of this type, and with this name; the name need not exist.
    `text`: only resources whose name contains it.
    `client`: only what this client sees.
    """

    environment_key: str
    kind: ResourceType | None = None
    name: str = ""
    text: str = ""
    depth: int = MAX_DEPTH
    client: ClientSummary | None = None

    @property
    def whole(self) -> bool:
        """Whether no resource is singled out."""
        return self.kind is None and not self.name and not self.text


@dataclass(slots=True)
class _Chosen:
    """The names that a graph shows.

    `rest`, `more`: how many others belong to it, and whether nobody counted all of these.
    `complete`: whether it is a whole environment; then `revisions` has the number of the newest revision of each
        resource.
    `every_link`: whether every reference of the environment was read, because so many names are shown.
    """

    keys: dict[Key, None] = field(default_factory=dict)
    focus: tuple[Key, ...] = ()
    rest: int = 0
    more: bool = False
    complete: bool = False
    every_link: bool = False
    revisions: Mapping[Key, int] = field(default_factory=dict)


def graph_read(*, scope: Scope, limit: int = DEFAULT_NODES) -> Graph:
    """The graph of a part of an environment, with at most `limit` nodes. Raises NotFound for a name that no resource
    has and to which none refers.
    """
    sights = sight_of(scope.client) if scope.client is not None else None
    if not scope.whole:
        chosen = _around(scope, _seeds(scope, limit), limit)
    elif sights is not None:
        chosen = _cut(sorted(sights, key=lambda key: (sights[key] is Sight.SERVED, key)), limit)
    else:
        chosen = _everything(scope.environment_key, limit)
    links = _links_among(scope, chosen, limit, sights)
    if sights is not None:
        _narrow(chosen, sights, links)
    return _graph(scope.environment_key, chosen, links, sights)


def graph_of_names(*, environment_key: str, keys: Collection[Key]) -> Graph:
    """The graph of these resources, with what they refer to and what refers to them, for one page of a list. Of those
    around them, only the references from and to these resources are read.
    """
    chosen = _Chosen(dict.fromkeys(keys), tuple(keys))
    links = links_out(environment_key=environment_key, sources=keys)
    links += links_in(environment_key=environment_key, targets=keys, limit=_MAX_NAMED)
    for link in links:
        chosen.keys |= {link.source: None, link.target: None}
    return _graph(environment_key, chosen, tuple(dict.fromkeys(links)), None)


def client_meant(*, environment_key: str, text: str) -> ClientSummary:
    """The client of an environment with this id or node id; of several with one node id, the one seen last. Raises
    NotFound.
    """
    found = client_list(environment_keys=[environment_key], wanted=ClientFilter(node_id=text))
    if found:
        return max(found, key=lambda each: each.last_seen)
    try:
        client = client_get(public_id=text)
    except NotFound:
        client = None
    if client is None or client.environment != environment_key:
        raise NotFound(f"'{environment_key}' never saw a client '{shown(text)}', or not within a day.")
    return client


def _seeds(scope: Scope, limit: int) -> _Chosen:
    """The resources with which the graph begins."""
    if scope.kind is not None and scope.name:
        key = (scope.kind.word, scope.name)
        known = _revisions(scope.environment_key, [key]) or users_counted(
            environment_key=scope.environment_key, keys=[key]
        )
        if not known:
            raise NotFound(
                f"There is no {scope.kind.word} '{shown(scope.name)}' in '{scope.environment_key}', and no resource "
                "refers to one."
            )
        return _Chosen({key: None}, (key,))
    rows = Resource.objects.filter(environment__key=scope.environment_key, deleted=False)
    if scope.kind is not None:
        rows = rows.filter(type=scope.kind.word)
    if scope.name:
        rows = rows.filter(name=scope.name)
    if scope.text:
        rows = rows.filter(name__contains=scope.text)
    keys = list(rows.order_by("type", "name").values_list("type", "name")[:limit])
    count = rows.count() if len(keys) == limit else len(keys)
    return _Chosen(dict.fromkeys(keys), tuple(keys), rest=count - len(keys))


def _around(scope: Scope, chosen: _Chosen, limit: int) -> _Chosen:
    """Add what the chosen resources need, what that needs, and so on; and the same upwards."""
    beyond: set[Key] = set()
    for down in (True, False):
        seen, step = set(chosen.focus), list(chosen.focus)
        for _ in range(scope.depth):
            found = _ends(scope.environment_key, step, chosen, down=down)
            step = []
            for key in found:
                if key in seen:
                    continue
                seen.add(key)
                if key in chosen.keys or len(chosen.keys) < limit:
                    chosen.keys[key] = None
                    step.append(key)
                else:
                    beyond.add(key)
            if not step:
                break
    beyond -= chosen.keys.keys()
    chosen.rest += len(beyond)
    chosen.more = chosen.more or bool(beyond)
    return chosen


def _ends(environment_key: str, step: Collection[Key], chosen: _Chosen, *, down: bool) -> list[Key]:
    """The names to which the resources of a step refer or, upwards, the resources that refer to them."""
    if down:
        return sorted({link.target for link in links_out(environment_key=environment_key, sources=step)})
    links = links_in(environment_key=environment_key, targets=step, limit=_MAX_READ)
    chosen.more = chosen.more or len(links) == _MAX_READ
    return sorted({link.source for link in links})


def _everything(environment_key: str, limit: int) -> _Chosen:
    """The resources of an environment. Where there are too many, those in trouble and of each type an equal share, the
    first by name; what a type leaves over is for the others.
    """
    rows = Resource.objects.filter(environment__key=environment_key, deleted=False)
    counts = dict(rows.order_by().values_list("type").annotate(count=Count("pk")))
    total = sum(counts.values())
    if total <= limit:
        revisions = {(word, name): number for word, name, number in rows.values_list("type", "name", "counter")}
        return _Chosen(dict.fromkeys(revisions), complete=True, revisions=revisions)
    chosen = _cut(sorted(statuses_in_trouble(environment_key=environment_key)), limit)
    room = limit - len(chosen.keys)
    for left, (word, count) in enumerate(sorted(counts.items(), key=lambda item: (item[1], item[0]))):
        share = min(count, room // (len(counts) - left))
        names = rows.filter(type=word).order_by("name").values_list("type", "name")[: share + len(chosen.keys)]
        fresh = [key for key in names if key not in chosen.keys][:share]
        chosen.keys.update(dict.fromkeys(fresh))
        room -= len(fresh)
    return _Chosen(chosen.keys, rest=total - len(chosen.keys))


def _cut(keys: Collection[Key], limit: int) -> _Chosen:
    kept = dict.fromkeys(list(keys)[:limit])
    return _Chosen(kept, rest=len(keys) - len(kept))


def _links_among(scope: Scope, chosen: _Chosen, limit: int, sights: Mapping[Key, Sight] | None) -> tuple[Link, ...]:
    """The references of the chosen resources. Where no resource is singled out, the names that do not exist, or that a
    client does not ask for, are added to the chosen ones as far as there is room: nothing else would show them.
    """
    key = scope.environment_key
    if not scope.whole:
        return links_out(environment_key=key, sources=chosen.keys)
    chosen.every_link = chosen.complete or len(chosen.keys) > _MAX_NAMED
    links = links_all(environment_key=key) if chosen.every_link else links_out(environment_key=key, sources=chosen.keys)
    targets = {
        link.target
        for link in links
        if link.target not in chosen.keys
        and (link.source in chosen.keys if sights is None else sights.get(link.source) is Sight.SERVED)
    }
    absent = dict.fromkeys(sorted(targets))
    if sights is None and not chosen.complete:
        there = _revisions(key, absent)
        absent = {each: None for each in absent if each not in there}
    room = limit - len(chosen.keys)
    added = list(absent)[: max(room, 0)]
    chosen.keys.update(dict.fromkeys(added))
    chosen.rest += len(absent) - len(added)
    if sights is None or chosen.every_link:
        return links
    # What a client does not ask for may exist, and refer to others.
    return (*links, *links_out(environment_key=key, sources=added))


def _narrow(chosen: _Chosen, sights: Mapping[Key, Sight], links: Iterable[Link]) -> None:
    """Leave only what a client sees, what that refers to, and what the graph was asked for."""
    referred = {link.target for link in links if sights.get(link.source) is Sight.SERVED}
    kept = {key: None for key in chosen.keys if key in sights or key in referred or key in chosen.focus}
    chosen.keys = kept


def _graph(environment_key: str, chosen: _Chosen, links: tuple[Link, ...], sights: Mapping[Key, Sight] | None) -> Graph:
    keys = sorted(chosen.keys)
    at = {key: position for position, key in enumerate(keys)}
    among: list[tuple[int, int, str]] = []
    uses, users, drawn = [0] * len(keys), [0] * len(keys), [0] * len(keys)
    # By position in place of name from here on: there are tens of thousands of references.
    for link in links:
        source, target = at.get(link.source), at.get(link.target)
        if source is not None:
            uses[source] += 1
        if target is not None:
            users[target] += 1
        if source is not None and target is not None:
            drawn[source] += 1
            drawn[target] += 1
            among.append((source, target, link.pointer))
    if not chosen.every_link:  # others refer to what is shown, too
        counted = users_counted(environment_key=environment_key, keys=keys)
        users = [counted.get(key, 0) for key in keys]
    revisions = chosen.revisions if chosen.complete else _revisions(environment_key, at.keys())
    statuses = _statuses(environment_key, revisions)
    asked = asking_counted(environment_key=environment_key, keys=keys)
    foreign = _authorities(environment_key)

    def node(key: Key, uses: int, used_by: int, drawn: int) -> Node:
        status, asked_by = statuses.get(key), asked.get(key, 0)
        elsewhere = status is None and foreign.have_elsewhere(key)
        state = node_state(status, elsewhere=elsewhere, used_by=used_by, asked_by=asked_by)
        sight = None if sights is None else sights.get(key, Sight.NOT_ASKED)
        return Node(*key, state, revisions.get(key), asked_by, uses, used_by, uses + used_by - drawn, sight)

    nodes = tuple(map(node, keys, uses, users, drawn))
    edges = tuple(Edge(keys[source], keys[target], pointer) for source, target, pointer in sorted(among))
    return Graph(nodes, edges, tuple(key for key in chosen.focus if key in at), chosen.rest, chosen.more)


def _revisions(environment_key: str, keys: Collection[Key]) -> Mapping[Key, int]:
    """The number of the newest revision of each of these resources; those that do not exist are left out."""
    rows = Resource.objects.filter(environment__key=environment_key, deleted=False)
    if len(keys) <= _MAX_NAMED:
        rows = rows.filter(type__in={word for word, _ in keys}, name__in=[name for _, name in keys])
    found = rows.order_by().values_list("type", "name", "counter")
    return {(word, name): counter for word, name, counter in found if (word, name) in keys}


def _statuses(environment_key: str, keys: Collection[Key]) -> Mapping[Key, Status]:
    if len(keys) <= _MAX_NAMED:
        named = statuses_named(names={(environment_key, key) for key in keys})
        return {key: named.get((environment_key, key), Status.PUBLISHED) for key in keys}
    troubled = statuses_in_trouble(environment_key=environment_key)
    return {key: troubled.get(key, Status.PUBLISHED) for key in keys}


def _authorities(environment_key: str) -> Authorities:
    names = Resource.objects.filter(environment__key=environment_key, deleted=False, name__startswith=XDSTP)
    return Authorities(names.values_list("type", "name"))
