"""From a target to one complete configuration: LDS, RDS, CDS (also aggregate), EDS or DNS (gRFC A74, with A88's notes).

Everything is worked out anew from what is known whenever something changes: `_Walk` goes down the tree and says what it
needs; what it needs and is not watched yet is watched, what it needs no more is let go. The listener hears complete
trees only: until each resource that the tree names has answered once, nothing is told.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.message import Message

from xdsclient.client import XdsClient
from xdsclient.decoding import CLUSTERS, ENDPOINTS, LISTENERS, ROUTES, ClientType
from xdsclient.dns import Resolve, resolve_by_system
from xdsclient.engine.values import ABSENT, OK, Absent, ResourceKey, Status, StatusCode
from xdsclient.names import listener_name
from xdsclient.watching import Watch
from xdsclient.xds_config import (
    ClusterConfig,
    EndpointConfig,
    XdsConfig,
    aggregate_children,
    clusters_of,
    dns_name_of,
    failure_of,
    resolution_note,
    route_source,
    said_of,
    virtual_host_for,
)
from xdscore.resource_types import LISTENER
from xdscore.schema.references import eds_name_of

# A37: deeper aggregates are refused.
_MAX_DEPTH = 16
# gRPC's DNS resolver asks no more often than this.
_DNS_INTERVAL_S = 30.0

_TYPES = {each.kind.url: each for each in (LISTENERS, ROUTES, CLUSTERS, ENDPOINTS)}


@dataclass(slots=True)
class _Known:
    """The watch of one resource, with what it told last. `news`: the resource or why there is none. `ambient`: the
    error beside a resource in use, OK where there is none. `changed` is called after each change.
    """

    changed: Callable[[], None]
    news: Message | Status | Absent = ABSENT
    ambient: Status = OK
    watch: Watch | None = None

    def on_resource_changed(self, resource: Message | Status) -> None:
        self.news, self.ambient = resource, OK
        self.changed()

    def on_ambient_error(self, error: Status) -> None:
        self.ambient = error
        self.changed()

    def let_go(self) -> None:
        if self.watch is not None:
            self.watch.cancel()


@dataclass(slots=True)
class _Resolved:
    """The last answer of DNS for one host and port; `task` asks for it again and again."""

    task: asyncio.Task[None]
    answer: Message | Status | Absent = ABSENT


@dataclass(slots=True)
class _Walk:
    """One pass down the tree of resources, from the listener to the endpoints: the resources and hosts it needed,
    whether all of them were known (`complete`), and the clusters it came by.
    """

    resources: set[ResourceKey] = field(default_factory=set)
    hosts: set[tuple[str, int]] = field(default_factory=set)
    complete: bool = True
    clusters: dict[str, ClusterConfig | Status] = field(default_factory=dict)


class DependencyManager:
    """Tells `listener` of every new configuration of `target`, as an XdsConfig or as a Status that says why there is
    none.

    `target` is what stands after `xds:` in a channel's target, such as `///pay.example:80` or `//authority/pay`, or
    simply the service's name. RPCs may fail with the Status as it is (A54). Use it inside the client's `async with`.
    """

    def __init__(
        self,
        client: XdsClient,
        target: str,
        listener: Callable[[XdsConfig | Status], None],
        *,
        resolve: Resolve = resolve_by_system,
    ) -> None:
        self._client = client
        self._listener = listener
        self._resolve = resolve
        self._node_id = client.bootstrap.node.id
        self._service, name = listener_name(client.bootstrap, target)
        self._root = ResourceKey(LISTENER, name)
        self._known: dict[ResourceKey, _Known] = {}
        self._hosts: dict[tuple[str, int], _Resolved] = {}
        self._told: XdsConfig | Status | Absent = ABSENT
        self._loop = asyncio.get_running_loop()
        self._scheduled: asyncio.Handle | None = None
        self._closed = False
        self._update()

    def close(self) -> None:
        """End every watch; the listener is told nothing more."""
        self._closed = True
        self._let_go_of_all_but(_Walk())
        if self._scheduled is not None:
            self._scheduled.cancel()

    # When something changes.

    def _changed(self) -> None:
        """Schedule one update for all changes that happen before it runs."""
        if self._scheduled is None and not self._closed:
            self._scheduled = self._loop.call_soon(self._update)

    def _update(self) -> None:
        self._scheduled = None
        walk = _Walk()
        found = self._config(walk)
        self._keep(walk)
        if walk.complete:
            self._let_go_of_all_but(walk)
        if walk.complete and not isinstance(found, Absent) and found != self._told:
            self._told = found
            self._listener(found)

    def _keep(self, walk: _Walk) -> None:
        """Watch the resources and resolve the hosts that the walk needs and that are not watched or resolved yet."""
        for key in walk.resources - self._known.keys():
            known = self._known[key] = _Known(self._changed)
            known.watch = self._client.watch(self._type_of(key), key.name, known)
        for host in walk.hosts - self._hosts.keys():
            self._hosts[host] = _Resolved(self._loop.create_task(self._resolve_on(host)))

    def _let_go_of_all_but(self, walk: _Walk) -> None:
        """Stop watching and resolving what a complete walk did not need. An incomplete walk stops nothing: what an
        earlier walk needed may turn out to be needed again.
        """
        for key in self._known.keys() - walk.resources:
            self._known.pop(key).let_go()
        for host in self._hosts.keys() - walk.hosts:
            self._hosts.pop(host).task.cancel()

    @staticmethod
    def _type_of(key: ResourceKey) -> ClientType[Message]:
        return _TYPES[key.kind.url]

    async def _resolve_on(self, host: tuple[str, int]) -> None:
        while True:
            answer = await self._resolve(*host)
            resolved = self._hosts[host]
            # Addresses that were good are kept when a later question fails.
            if not (isinstance(answer, Status) and isinstance(resolved.answer, Message)):
                resolved.answer = answer
                self._changed()
            await asyncio.sleep(_DNS_INTERVAL_S)

    # The way down.

    def _config(self, walk: _Walk) -> XdsConfig | Status | Absent:
        listener = self._resource(walk, self._root)
        if not isinstance(listener, Message):
            return listener
        source = route_source(listener)
        if source == "":
            return self._fails(self._root, "is no API listener with an HTTP connection manager")
        if isinstance(source, str):
            key = ResourceKey(ROUTES.kind, source)
            route = self._resource(walk, key)
            if not isinstance(route, Message):
                return route
            above: tuple[ResourceKey, ...] = (self._root, key)
        else:
            route, above = source, (self._root,)
        virtual_host = virtual_host_for(route, self._service)
        if virtual_host is None:
            return self._fails(above[-1], f"has no virtual host for '{self._service}'")
        for name in clusters_of(virtual_host):
            self._cluster(walk, name, above, 0)
        return XdsConfig(listener, route, virtual_host, walk.clusters)

    def _resource(self, walk: _Walk, key: ResourceKey) -> Message | Status | Absent:
        """The resource, or a status with which RPCs can fail that says why there is none; ABSENT while nothing was
        heard of it, which makes the walk incomplete.
        """
        walk.resources.add(key)
        known = self._known.get(key)
        news = known.news if known is not None else ABSENT
        if isinstance(news, Absent):
            walk.complete = False
        return failure_of(key, news, self._node_id) if isinstance(news, Status) else news

    def _fails(self, key: ResourceKey, why: str) -> Status:
        return failure_of(key, Status(StatusCode.UNAVAILABLE, why), self._node_id)

    def _cluster(self, walk: _Walk, name: str, above: tuple[ResourceKey, ...], depth: int) -> tuple[str, ...]:
        """Add a cluster and the clusters below it to the walk; return the names of those at the bottom, which are no
        aggregates. `above`: the resources that led to it; `depth`: how many of them are aggregates.
        """
        key = ResourceKey(CLUSTERS.kind, name)
        if name in walk.clusters:
            return self._leaves_of(walk, name)
        if depth >= _MAX_DEPTH:
            walk.clusters[name] = self._fails(key, f"aggregates are nested more than {_MAX_DEPTH} deep")
            return (name,)
        cluster = self._resource(walk, key)
        if not isinstance(cluster, Message):
            if isinstance(cluster, Status):
                walk.clusters[name] = cluster
            return (name,)
        children = aggregate_children(cluster)
        if not children:
            walk.clusters[name] = ClusterConfig(cluster, self._endpoints(walk, cluster, (*above, key)))
            return (name,)
        # Stands for itself while its children are looked at, so that a cycle comes to an end.
        walk.clusters[name] = ClusterConfig(cluster, ())
        leaves = tuple(
            dict.fromkeys(leaf for child in children for leaf in self._cluster(walk, child, above, depth + 1))
        )
        walk.clusters[name] = (
            ClusterConfig(cluster, leaves) if leaves else self._fails(key, "the aggregate has no leaf clusters")
        )
        return leaves

    @staticmethod
    def _leaves_of(walk: _Walk, name: str) -> tuple[str, ...]:
        config = walk.clusters[name]
        if isinstance(config, Status) or isinstance(config.children, EndpointConfig):
            return (name,)
        return config.children

    def _endpoints(self, walk: _Walk, cluster: Message, above: tuple[ResourceKey, ...]) -> EndpointConfig:
        """The endpoints of a cluster that is no aggregate, with the errors of its own resources and of those in
        `above`, which led to it (A88).
        """
        eds_name = eds_name_of(cluster)
        host = dns_name_of(cluster)
        if eds_name:
            key = ResourceKey(ENDPOINTS.kind, eds_name)
            self._resource(walk, key)
            return self._with_note(self._known[key].news if key in self._known else ABSENT, (*above, key))
        if host[0]:
            return self._with_note(self._address(walk, host), above)
        return self._with_note(Status(StatusCode.UNAVAILABLE, "is neither EDS nor LOGICAL_DNS nor an aggregate"), above)

    def _with_note(self, found: Message | Status | Absent, keys: tuple[ResourceKey, ...]) -> EndpointConfig:
        known = [(key, self._known[key].ambient) for key in keys if key in self._known]
        troubles = [said_of(key, ambient) for key, ambient in known if not ambient.ok]
        if isinstance(found, Status):
            troubles.append(said_of(keys[-1], found))
        endpoints = found if isinstance(found, Message) else ABSENT
        return EndpointConfig(endpoints, resolution_note(troubles, self._node_id))

    def _address(self, walk: _Walk, host: tuple[str, int]) -> Message | Status | Absent:
        walk.hosts.add(host)
        resolved = self._hosts.get(host)
        if resolved is None or isinstance(resolved.answer, Absent):
            walk.complete = False
            return ABSENT
        return resolved.answer
