"""Drives `xdsclient.engine` by hand: a stream that a test writes both ends of, and everything the watchers heard."""

from collections.abc import Iterable

from xdsclient.engine.collection import is_collection
from xdsclient.engine.engine import Engine, EngineSettings
from xdsclient.engine.events import (
    Ambient,
    Connect,
    Connectivity,
    Deliver,
    DeltaRequest,
    Disconnect,
    Effect,
    Event,
    Gone,
    Invalid,
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
from xdsclient.engine.values import CacheEntry, Resource, ResourceKey, ServerFeature, Status, StatusCode
from xdscore.resource_types import RESOURCE_TYPES, ResourceType

FAIL = ServerFeature.FAIL_ON_DATA_ERRORS
TRANSIENT = ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR
IGNORE = ServerFeature.IGNORE_RESOURCE_DELETION
LOST = Status(StatusCode.UNAVAILABLE, "connection refused")

# What a watch heard: "v1" is a resource, "!NOT_FOUND" an error that ends its use, "~UNAVAILABLE" an ambient one, "~OK"
# its end. The watch of a collection hears the same after a member's name, "-name NOT_FOUND" of one that is gone, and
# under its own name of the whole, of which "answered" is the news.
Heard = list[str]


def valid(name: str, version: str = "v1", raw: bytes | None = None) -> Valid:
    return Valid(name, version, version, version.encode() if raw is None else raw)


def invalid(name: str, version: str = "v2", text: str = "broken") -> Invalid:
    return Invalid(name, version, text, b"raw")


def error(name: str, code: int, text: str = "because") -> ReportedError:
    return ReportedError(name, Status(code, text))


class Driver:
    """One engine, one hand on its stream, one on its watches."""

    def __init__(
        self,
        *features: ServerFeature,
        variant: Variant = Variant.SOTW,
        guard: bool = True,
        servers: tuple[frozenset[ServerFeature], ...] = (),
    ) -> None:
        settings = EngineSettings(servers or (frozenset(features),), variant, guard)
        self.engine = Engine(settings, RESOURCE_TYPES)
        self.variant = variant
        self.now = 0.0
        self.heard: dict[int, Heard] = {}
        self.statuses: dict[int, list[Status]] = {}
        # Watches of collections, which hear of members by name.
        self.collections: set[int] = set()
        self.written: list[Request] = []
        self.effects: list[Effect] = []
        self._watch = 0
        self._nonce = 0

    # Events.

    def do(self, event: Event) -> tuple[Effect, ...]:
        effects = self.engine.handle(event, self.now)
        for effect in effects:
            match effect:
                case Deliver(news=Resource(value=value)):
                    self._hear(effect, "answered" if value is None else str(value))
                case Deliver(news=Status() as status) | Ambient(error=status):
                    mark = "~" if isinstance(effect, Ambient) else "!"
                    self._hear(effect, mark + str(status).partition(":")[0])
                    self.statuses[effect.watch].append(status)
                case Gone(watch=watch, name=name, reason=reason):
                    self.heard[watch].append(f"-{name} {str(reason).partition(':')[0]}")
        self.effects += effects
        return effects

    def _hear(self, effect: Deliver | Ambient, what: str) -> None:
        about = f"{effect.name} " if effect.watch in self.collections else ""
        self.heard[effect.watch].append(about + what)

    def watch(self, kind: ResourceType, name: str) -> int:
        self._watch += 1
        self.heard[self._watch] = []
        if is_collection(kind, name):
            self.collections.add(self._watch)
        self.statuses[self._watch] = []
        self.do(WatchStarted(self._watch, kind, name))
        self.flush()
        return self._watch

    def unwatch(self, watch: int, *, flush: bool = True) -> None:
        self.do(WatchStopped(watch))
        if flush:
            self.flush()

    def open(self) -> None:
        self.do(StreamOpened())
        self.flush()

    def flush(self) -> list[Request]:
        """Everything the client can write is written; what it was."""
        before = len(self.written)
        while (request := self.engine.request()) is not None:
            self.written.append(request)
            self.do(RequestWritten(request))
            assert len(self.written) < before + 100, "the engine does not come to rest"
        return self.written[before:]

    def respond(
        self,
        kind: ResourceType,
        *resources: Valid | Invalid,
        errors: Iterable[ReportedError] = (),
        removed: Iterable[str] = (),
        version: str = "",
    ) -> list[Request]:
        """A response, read and answered; what was written in answer."""
        self._nonce += 1
        response = Response(
            kind.url, version or f"r{self._nonce}", str(self._nonce), resources, tuple(errors), tuple(removed)
        )
        self.do(response)
        return self.flush()

    def close(self, status: Status = LOST) -> tuple[Effect, ...]:
        return self.do(StreamClosed(status))

    def wait(self, seconds: float) -> None:
        """Time passes; timers fire as the engine asks for it."""
        end = self.now + seconds
        while self.engine.deadline() <= end:
            self.now = self.engine.deadline()
            self.do(Tick())
        self.now = end

    # What is seen.

    def entry(self, kind: ResourceType, name: str) -> CacheEntry:
        return self.engine.entries()[ResourceKey(kind, name)]

    def label(self, kind: ResourceType, name: str) -> str:
        return self.entry(kind, name).label

    def last(self) -> Request:
        return self.written[-1]

    def connects(self) -> list[tuple[int, float]]:
        return [(effect.server, round(effect.after_s, 2)) for effect in self.effects if isinstance(effect, Connect)]

    def connectivity(self) -> list[tuple[int, bool]]:
        return [(effect.server, effect.up) for effect in self.effects if isinstance(effect, Connectivity)]

    def disconnects(self) -> int:
        return sum(isinstance(effect, Disconnect) for effect in self.effects)


def connected(
    kind: ResourceType,
    name: str = "a",
    *features: ServerFeature,
    cached: bool,
    variant: Variant = Variant.SOTW,
    guard: bool = True,
) -> tuple[Driver, int]:
    """A client with one watch on an open stream; `cached`: the server sent version v1."""
    driver = Driver(*features, variant=variant, guard=guard)
    watch = driver.watch(kind, name)
    driver.open()
    if cached:
        driver.respond(kind, valid(name))
    return driver, watch


def names_asked(request: Request) -> tuple[str, ...]:
    assert isinstance(request, SotwRequest)
    return request.names


def delta(request: Request) -> DeltaRequest:
    assert isinstance(request, DeltaRequest)
    return request
