"""The asyncio client: watches in, news out. It decides nothing; `engine` does, and `link` talks to the servers."""

import asyncio
import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Self, TypeVar

from xdsclient.bootstrap import Bootstrap, Server, data_error_handling
from xdsclient.decoding import STANDARD_TYPES, ClientType, load_descriptors
from xdsclient.engine.engine import Engine, EngineSettings
from xdsclient.engine.events import Deliver, News, Variant, WatchStarted, WatchStopped
from xdsclient.engine.values import CacheEntry, Status, StatusCode
from xdsclient.link import Link
from xdsclient.metrics import NO_METRICS, Metrics, ResourceLabels
from xdsclient.names import (
    OLD_STYLE_AUTHORITY,
    UnwatchableNameError,
    WatchedName,
    authority_of,
    watched_collection,
    watched_name,
)
from xdsclient.watching import (
    CollectionWatcher,
    Following,
    FollowingCollection,
    NewsReader,
    ResourceWatcher,
    Watch,
    tell_collection,
    tell_resource,
)
from xdsclient.wire import Wire
from xdscore.names import canonical
from xdscore.resource_types import ResourceType

log = logging.getLogger(__name__)

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Watching:
    """One watch: the watcher, the function that tells it news, and the link over which news comes; no link when the
    name cannot be asked for.
    """

    watcher: object
    tell: Callable[[News], None]
    link: Link | None


class DataErrorHandling(Enum):
    """Whether the client follows gRFC A88: on, off, or as the variable GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING
    says.
    """

    FROM_ENVIRONMENT = "from_environment"
    ON = "on"
    OFF = "off"


class XdsClient:
    """Watches resources of any number of servers, for as long as its `async with` block lasts. Not for use by several
    threads.

    `target` is the data plane target that the client is for, as metrics and CSDS show it; "#server" is A78's word for a
    client without one. Equal watches share one subscription. A stream is open while something is watched.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        *,
        target: str = "#server",
        types: Sequence[ClientType[object]] = STANDARD_TYPES,
        variant: Variant = Variant.SOTW,
        metrics: Metrics = NO_METRICS,
        data_errors: DataErrorHandling = DataErrorHandling.FROM_ENVIRONMENT,
    ) -> None:
        self.bootstrap = bootstrap
        self.target = target
        self._types = {each.kind.url: each for each in types}
        self._variant = variant
        self._metrics = metrics
        self._guard = (
            data_error_handling(os.environ)
            if data_errors is DataErrorHandling.FROM_ENVIRONMENT
            else data_errors is DataErrorHandling.ON
        )
        self._wire = Wire(bootstrap.node, variant, types)
        self._links: dict[tuple[Server, ...], Link] = {}
        self._watches: dict[int, _Watching] = {}
        self._last_watch = 0
        self._news: deque[News] = deque()
        self._is_telling = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        # Not on the loop: it would stand still when the first response comes.
        await asyncio.to_thread(load_descriptors)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """End every watch and, once the server has read the last ACK or NACK of its responses, every stream. No watcher
        is told; iterators over news end.
        """
        await asyncio.gather(*(link.finish() for link in self._links.values()))
        for watching in list(self._watches.values()):
            if isinstance(watching.watcher, NewsReader):
                watching.watcher.close()
        self._watches.clear()
        self._news.clear()
        await asyncio.gather(*(link.close() for link in self._links.values()))
        self._links.clear()
        self._loop = None

    # Watching.

    def watch(self, kind: ClientType[R], name: str, watcher: ResourceWatcher[R]) -> Watch:
        """Tell `watcher` of a resource from now on; it is never called before this method returns.

        When the name cannot be asked for, the watcher is told so by a Status, as of any other error. Raises
        RuntimeError outside `async with`, and ValueError for a type that the client was not given.
        """
        return self._watch(kind, name, watched_name, watcher, partial(tell_resource, watcher))

    def watch_collection(self, kind: ClientType[R], name: str, watcher: CollectionWatcher[R]) -> Watch:
        """Tell `watcher` of every member of a collection, by the members' own names. Errors and exceptions are those of
        `watch`.

        `name` is a glob such as `xdstp://AUTHORITY/TYPE/DIRECTORY/*` (xRFC TP1), or "*" for every listener or cluster
        that the server has for this client.
        """
        tell = partial(tell_collection, watcher, canonical(name))
        return self._watch(kind, name, watched_collection, watcher, tell)

    def _watch(
        self,
        kind: ClientType[Any],
        name: str,
        read: Callable[[str, ResourceType], WatchedName],
        watcher: object,
        tell: Callable[[News], None],
    ) -> Watch:
        if self._loop is None:
            raise RuntimeError("an XdsClient watches only inside its 'async with' block")
        if self._types.get(kind.kind.url) is not kind:
            raise ValueError(f"this client was not given the type {kind.kind.message}")
        self._last_watch += 1
        number = self._last_watch
        try:
            wanted = read(name, kind.kind)
            link = self._link_of(wanted.authority)
        except UnwatchableNameError as error:
            self._watches[number] = _Watching(watcher, tell, None)
            self._hear(Deliver(number, canonical(name), Status(StatusCode.INVALID_ARGUMENT, str(error))))
        else:
            self._watches[number] = _Watching(watcher, tell, link)
            link.send(WatchStarted(number, kind.kind, wanted.text))
        return _Watch(self, number)

    def follow(self, kind: ClientType[R], name: str) -> Following[R]:
        """The news of one resource as an asynchronous iterator: `async with client.follow(CLUSTERS,
        "pay") as news:`.
        """
        following: Following[R] = Following()
        following.begin(self.watch(kind, name, following))
        return following

    def follow_collection(self, kind: ClientType[R], name: str) -> FollowingCollection[R]:
        """The news of a collection, as `watch_collection` gives them, as an asynchronous iterator."""
        following: FollowingCollection[R] = FollowingCollection()
        following.begin(self.watch_collection(kind, name, following))
        return following

    def stop(self, number: int) -> None:
        """End the watch that has this number; called by `Watch.cancel`."""
        watching = self._watches.pop(number, None)
        if watching is not None and watching.link is not None:
            watching.link.send(WatchStopped(number))

    def _link_of(self, authority: str) -> Link:
        servers = self._servers_of(authority)
        link = self._links.get(servers)
        if link is None:
            settings = EngineSettings(tuple(each.features for each in servers), self._variant, self._guard)
            engine = Engine(settings, [each.kind for each in self._types.values()])
            link = self._links[servers] = Link(
                servers,
                engine,
                self._wire,
                self._variant,
                target=self.target,
                metrics=self._metrics,
                hear=self._hear,
            )
        return link

    def _servers_of(self, authority: str) -> tuple[Server, ...]:
        if authority == OLD_STYLE_AUTHORITY:
            return self.bootstrap.servers
        found = self.bootstrap.authorities.get(authority)
        if found is None:
            raise UnwatchableNameError(f"the authority '{authority}' is not in the bootstrap")
        return found.servers or self.bootstrap.servers

    # Telling watchers.

    def _hear(self, effect: News) -> None:
        self._news.append(effect)
        if not self._is_telling and self._loop is not None:
            self._is_telling = True
            self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        """Tell watchers all news that wait, and news that arrive while watchers are called."""
        try:
            while self._news:
                effect = self._news.popleft()
                watching = self._watches.get(effect.watch)
                if watching is not None:
                    _call(watching, effect)
        finally:
            self._is_telling = False

    # What is known.

    def cache(self) -> tuple[CacheEntry, ...]:
        """Every watched resource at one moment, in the order of types and names.

        Members of collections are included. A collection itself is included only while the server has not answered for
        it, or while it is in error.
        """
        entries = (entry for link in self._links.values() for entry in link.engine.entries().values())
        return tuple(sorted(entries, key=lambda entry: (entry.key.kind.url, entry.key.name)))

    def servers(self) -> Mapping[tuple[str, ...], str]:
        """The address of the server in use in each list of servers of the bootstrap. A key is the addresses of one such
        list.
        """
        return {
            tuple(each.uri for each in servers): servers[link.engine.server].uri
            for servers, link in self._links.items()
        }

    def resource_counts(self) -> Mapping[ResourceLabels, int]:
        """The number of watched resources for each set of labels: the gauge `grpc.xds_client.resources` (A78, A88) at
        one moment.
        """
        return Counter(
            ResourceLabels(
                self.target,
                authority_of(entry.key.name),
                entry.label,
                entry.key.kind.message,
            )
            for entry in self.cache()
        )


class _Watch:
    """The watch that `XdsClient.watch` returns, known by its number."""

    __slots__ = ("_client", "_number")

    def __init__(self, client: XdsClient, number: int) -> None:
        self._client = client
        self._number = number

    def cancel(self) -> None:
        self._client.stop(self._number)


def _call(watching: _Watching, effect: News) -> None:
    """Tell one watcher one piece of news. An exception that the watcher raises is logged, so that the other watchers
    are told all the same.
    """
    try:
        watching.tell(effect)
    except Exception:
        log.exception("a watcher failed")
