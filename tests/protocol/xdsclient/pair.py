"""The client's engine and the server's engine in one process, with a network between them that only delays and breaks.

No client but this one reads `resource_errors` over delta, so this pair is where TP3 over delta is tried.
"""

from collections import deque
from collections.abc import Iterator
from math import inf

from adsserver.engine import events as server
from adsserver.engine.session import Session
from tests.protocol.engine.world import AUDIENCE, URL, World, session_of
from xdsclient.engine.collection import WILDCARD, is_collection
from xdsclient.engine.engine import Engine, EngineSettings
from xdsclient.engine.events import (
    Ambient,
    Connect,
    Deliver,
    Disconnect,
    Event,
    Gone,
    Invalid,
    Nack,
    News,
    ReportedError,
    Request,
    RequestWritten,
    Response,
    SotwRequest,
    StreamClosed,
    StreamOpened,
    Tick,
    Valid,
    Variant,
    WatchStarted,
    WatchStopped,
)
from xdsclient.engine.values import OK, Absent, CacheState, Resource, ResourceKey, ServerFeature, Status, StatusCode
from xdscore.decision import (
    Collection,
    Decision,
    Serve,
    Withheld,
    client_view,
    decide,
    decide_collection,
)
from xdscore.errors import error_of
from xdscore.resource_types import ResourceType
from xdscore.xdstp import glob_of

LOST = Status(StatusCode.UNAVAILABLE, "the network broke")


class Watcher:
    """What one watch believes, from what it was told alone."""

    def __init__(self, kind: ResourceType, name: str) -> None:
        self.kind = kind
        self.name = name
        self.news: Resource | Status | None = None
        self.ambient = OK

    def hear(self, effect: News) -> None:
        assert effect.name == self.name
        match effect:
            case Deliver(news=news):
                self.news, self.ambient = news, OK
            case Ambient(error=error):
                assert isinstance(self.news, Resource), "an ambient error needs a resource"
                self.ambient = error
            case Gone():
                raise AssertionError("who asks for a name itself is told what is wrong with it")

    @property
    def version(self) -> str:
        return self.news.version if isinstance(self.news, Resource) else ""

    @property
    def trouble(self) -> str:
        """The error it would show: instead of the resource, or beside it."""
        return self.news.message if isinstance(self.news, Status) else self.ambient.message


class CollectionWatcher:
    """What the watch of a collection believes: its members, each as a watcher of its name would, and of the whole."""

    def __init__(self, kind: ResourceType, name: str) -> None:
        self.kind = kind
        self.name = name
        self.members: dict[str, Watcher] = {}
        self.status: Status | None = None

    def hear(self, effect: News) -> None:
        match effect:
            case Gone(name=name):
                del self.members[name]
            case Deliver(name=name, news=news) if name == self.name:
                self.status = news if isinstance(news, Status) else OK
            case Ambient(name=name, error=error) if name == self.name:
                self.status = error
            case Deliver(name=name):
                self.members.setdefault(name, Watcher(self.kind, name)).hear(effect)
            case Ambient(name=name):
                self.members[name].hear(effect)


class Pair:
    """A world, a server's session when there is a stream, a client, and the messages between them."""

    def __init__(
        self, world: World, variant: Variant, features: frozenset[ServerFeature], kinds: tuple[ResourceType, ...]
    ) -> None:
        self.world = world
        self.variant = variant
        self.features = features
        self.kinds = {kind.url: kind for kind in kinds}
        self.engine = Engine(EngineSettings((features,), variant), kinds)
        self.session: Session | None = None
        self.now = 0.0
        self.poison: set[str] = set()
        self.up: deque[Request] = deque()
        self.down: deque[server.Respond] = deque()
        self.watchers: dict[int, Watcher | CollectionWatcher] = {}
        self.connect_at_s = inf
        self.reachable = True
        self._watch = 0

    # The client's shell.

    def do(self, event: Event) -> None:
        for effect in self.engine.handle(event, self.now):
            match effect:
                case Connect(after_s=after_s):
                    self.connect_at_s = self.now + after_s
                case Disconnect():
                    self._drop()
                case Deliver() | Ambient() | Gone():
                    self.watchers[effect.watch].hear(effect)
        self._check()

    def watch(self, kind: ResourceType, name: str) -> None:
        self._watch += 1
        watcher = CollectionWatcher(kind, name) if is_collection(kind, name) else Watcher(kind, name)
        self.watchers[self._watch] = watcher
        self.do(WatchStarted(self._watch, kind, name))

    def unwatch(self, which: int) -> None:
        if self.watchers:
            watch = sorted(self.watchers)[which % len(self.watchers)]
            del self.watchers[watch]
            self.do(WatchStopped(watch))

    def write_request(self) -> bool:
        request = self.engine.request()
        if request is None:
            return False
        assert self.session is not None
        self.up.append(request)
        self.do(RequestWritten(request))
        return True

    def read_response(self) -> bool:
        if not self.down:
            return False
        self.do(self._decoded(self.down.popleft()))
        return True

    def _decoded(self, response: server.Respond) -> Response:
        resources = tuple(
            Invalid(member.name, member.content.version, "poison")
            if member.content.version in self.poison
            else Valid(member.name, member.content.version, member.content.version, member.content.blob)
            for member in response.resources
        )
        errors = tuple(ReportedError(error.name, Status(error.code, error.text)) for error in response.errors)
        return Response(response.kind.url, response.version, response.nonce, resources, errors, response.removed)

    # The server.

    def publish(self) -> None:
        publication = self.world.publish()
        if self.session is not None:
            self.session.offer(publication, self.now)

    def read_request(self) -> bool:
        if not self.up or self.session is None:
            return False
        self.session.receive(_for_server(self.up.popleft()), self.now)
        return True

    def write_response(self) -> bool:
        response = self.session.compose(self.now) if self.session is not None else None
        if response is None:
            return False
        self.down.append(response)
        return True

    # The network and time.

    def _drop(self) -> None:
        self.session = None
        self.up.clear()
        self.down.clear()
        self.connect_at_s = inf

    def break_stream(self) -> None:
        if self.session is not None:
            self._drop()
            self.do(StreamClosed(LOST))

    def wait(self, seconds: float) -> None:
        """Time passes; timers fire and connections come about when they are due."""
        end = self.now + seconds
        while (due := min(self.engine.deadline(), self.connect_at_s)) <= end:
            self.now = max(self.now, due)
            if self.connect_at_s <= self.now:
                self._connect()
            else:
                self.do(Tick())
        self.now = end

    def _connect(self) -> None:
        self.connect_at_s = inf
        if not self.reachable:
            self.do(StreamClosed(LOST))
            return
        self.session = session_of(self.world, server.Variant(self.variant.value))
        self.do(StreamOpened())

    def settle(self) -> None:
        """Let the network be whole and everything be read and written until nothing moves."""
        self.reachable = True
        self.publish()
        if self.session is None and self.watchers:
            self.wait(max(self.connect_at_s - self.now, 0.0))
        for _ in range(1000):
            # A list, so that each of them is tried.
            moved = any([self.write_request(), self.read_request(), self.write_response(), self.read_response()])
            wake = self.session.wake_at() if self.session is not None else inf
            # What a collection no longer has is known for sure only when nothing more is said of it for a while.
            wake = min(wake, self.engine.deadline())
            if not moved and wake == inf:
                return
            if not moved:
                self.wait(max(wake - self.now, 0.0))
        raise AssertionError("the pair does not come to rest: a loop")

    # What must hold at every moment.

    def _check(self) -> None:
        entries = self.engine.entries()
        resources = list(self._resource_watchers())
        collections = [each for each in self.watchers.values() if isinstance(each, CollectionWatcher)]
        silent = {(each.kind, each.name) for each in collections if each.status is None or not each.status.ok}
        known = {(each.kind, each.name) for each in resources}
        assert known <= {(key.kind, key.name) for key in entries} <= known | silent
        for one in collections:
            twins = [each for each in collections if (each.kind, each.name) == (one.kind, one.name)]
            assert all(each.members.keys() == one.members.keys() for each in twins), "all of them know the same"
        by_key: dict[ResourceKey, Watcher] = {}
        for watcher in resources:
            key = ResourceKey(watcher.kind, watcher.name)
            entry = entries[key]
            # A88: the data exposed to watchers is consistent with the cache.
            if isinstance(entry.resource, Resource):
                assert watcher.version == entry.resource.version or self._same_content(watcher, entry.resource)
            else:
                assert not isinstance(watcher.news, Resource), "what is dropped from the cache is in use nowhere"
            first = by_key.setdefault(key, watcher)
            if isinstance(first.news, Resource):
                assert first.ambient == watcher.ambient, "all watchers of a resource know the same"
            match entry.state:
                case CacheState.REQUESTED:
                    assert isinstance(entry.resource, Absent)
                    assert entry.error.ok
                case CacheState.ACKED:
                    assert isinstance(entry.resource, Resource)
                    assert entry.error.ok
                case CacheState.TIMEOUT:
                    assert isinstance(entry.resource, Absent)
                    assert not entry.error.ok
                case _:
                    assert not entry.error.ok
                    fails = ServerFeature.FAIL_ON_DATA_ERRORS in self.features
                    data = entry.state is not CacheState.RECEIVED_ERROR or entry.error.is_data_error
                    assert not (fails and data and isinstance(entry.resource, Resource)), "A88: dropped"

    def _resource_watchers(self) -> Iterator[Watcher]:
        """Whoever watches a resource, by its own name or as a member of a collection."""
        for watcher in self.watchers.values():
            if isinstance(watcher, CollectionWatcher):
                yield from watcher.members.values()
            else:
                yield watcher

    @staticmethod
    def _same_content(watcher: Watcher, resource: Resource) -> bool:
        return isinstance(watcher.news, Resource) and watcher.news.raw == resource.raw

    # What must hold when nothing moves.

    def check_converged(self) -> None:
        for watcher in self.watchers.values():
            if isinstance(watcher, CollectionWatcher):
                self._check_collection(watcher)
            else:
                self._check_watcher(watcher)

    def _check_collection(self, watcher: CollectionWatcher) -> None:
        kind, glob = watcher.kind, glob_of(watcher.name)
        snapshot = self.world.published
        found = (
            Collection(tuple(client_view(AUDIENCE, kind, snapshot)), ())
            if glob is None
            else decide_collection(AUDIENCE, kind, glob, snapshot)
        )
        assert watcher.status is not None, "a collection is answered"
        if not isinstance(found, Collection):
            error = error_of(found, kind=kind, name=watcher.name, environment="default", public_url=URL)
            assert error is not None
            assert watcher.status.message == error.text, "TP3: an error of the collection as a whole"
            fails = ServerFeature.FAIL_ON_DATA_ERRORS in self.features
            assert not (fails and watcher.members), "A88: whoever drops what is refused has no members left"
            return
        assert watcher.status.ok, (kind.short, watcher.name, watcher.status)
        # What is refused may be left out of a full state (D13), as a neighbour of it may be (decisions C8).
        doubtful = {name for name in found.served if any(version.startswith(kind.word) for version in self.poison)}
        members = watcher.members.keys() - self._kept(watcher)
        assert {*found.served, *found.absent} - doubtful <= watcher.members.keys(), "every member is told"
        assert members <= {*found.served, *found.absent}, "F19: no member outlives its end"
        for name in members:
            self._check_watcher(watcher.members[name])

    def _kept(self, watcher: CollectionWatcher) -> set[str]:
        """What it has of a wildcard although it is withheld: an error told to who asks for it otherwise keeps it."""
        wildcard = watcher.name == WILDCARD
        return {n for n in watcher.members if wildcard and isinstance(self._decision(watcher.kind, n), Withheld)}

    def _decision(self, kind: ResourceType, name: str) -> Decision:
        return decide(AUDIENCE, kind, name, self.world.published)

    def _check_watcher(self, watcher: Watcher) -> None:
        kind, name = watcher.kind, watcher.name
        decision = self._decision(kind, name)
        entry = self.engine.entries()[ResourceKey(kind, name)]
        if not isinstance(decision, Serve):
            error = error_of(decision, kind=kind, name=name, environment="default", public_url=URL)
            assert error is not None
            assert entry.state is CacheState.RECEIVED_ERROR, (kind.short, name, entry)
            assert watcher.trouble == error.text, "T1, TP3: the error shown is the server's decision"
            return
        if decision.content.version in self.poison:
            return
        if self.poison and entry.state is not CacheState.ACKED:
            # In a full state nothing tells suspects apart, and an innocent one may wait for its neighbour (decisions
            # C8); without a NACK of this type there is no such excuse.
            assert any(version.startswith(kind.word) for version in self.poison)
            return
        assert entry.state is CacheState.ACKED, (kind.short, name, entry)
        assert watcher.trouble == "" or isinstance(watcher.news, Resource)
        assert watcher.ambient.ok, "F11: an error ends when the resource is sent"
        if not self.poison:
            assert watcher.version == decision.content.version, (kind.short, name)


def _for_server(request: Request) -> server.Request:
    nack = _nack_for_server(request.nack)
    if isinstance(request, SotwRequest):
        return server.SotwRequest(request.kind, request.names, request.nonce, request.version, nack)
    return server.DeltaRequest(
        request.kind, request.subscribe, request.unsubscribe, request.initial_versions, request.nonce, nack
    )


def _nack_for_server(nack: Nack | None) -> server.Nack | None:
    return server.Nack(nack.code, nack.message) if nack is not None else None
