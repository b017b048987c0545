"""The cache of one list of xDS servers, and the life of the stream to one of them.

The shell feeds it events and carries its effects out; whenever the stream can take a request, it writes what `request`
gives and reports it as `RequestWritten`. Servers are tried in order; the one that answers is kept until its stream
ends, and then the first is tried again. (A71 would return to the first while the stream to another goes on.)
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import assert_never

from xdsclient.engine.collection import Collection
from xdsclient.engine.delta import DeltaType
from xdsclient.engine.entry import Entry
from xdsclient.engine.events import (
    ChannelFailed,
    Connect,
    Connectivity,
    Disconnect,
    Effect,
    Event,
    Request,
    RequestWritten,
    Response,
    SotwRequest,
    StreamClosed,
    StreamOpened,
    Tick,
    Updates,
    Variant,
    Violated,
    WatchStarted,
    WatchStopped,
)
from xdsclient.engine.policy import policy_of
from xdsclient.engine.sotw import SotwType
from xdsclient.engine.type_stream import TypeStream
from xdsclient.engine.values import OK, CacheEntry, ResourceKey, ServerFeature, Status, StatusCode
from xdscore.resource_types import ResourceType

# gRPC's connection back-off, which A57 takes over for streams that brought no response.
_FIRST_WAIT_S = 1.0
_WAIT_FACTOR = 1.6
_LONGEST_WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of an engine.

    servers: the features of each server, in the order in which servers are tried.
    variant: which of the two variants of the protocol it speaks.
    data_error_handling: whether the client follows A88 (its guard, GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING).
    """

    servers: tuple[AbstractSet[ServerFeature], ...] = (frozenset(),)
    variant: Variant = Variant.SOTW
    data_error_handling: bool = True


class _Link(Enum):
    """The state of the connection: no stream, a stream being opened, or an open one."""

    IDLE = "idle"
    CONNECTING = "connecting"
    OPEN = "open"


class Engine:
    """The client's side of the protocol, without I/O. Every event has an effect, possibly none, in every state; an
    event that does not fit the state changes nothing.
    """

    def __init__(self, settings: EngineSettings, kinds: Iterable[ResourceType]) -> None:
        guard = settings.data_error_handling
        self._policies = [policy_of(features, data_error_handling=guard) for features in settings.servers]
        make = SotwType if settings.variant is Variant.SOTW else DeltaType
        self._types: dict[str, TypeStream] = {kind.url: make(kind) for kind in kinds}
        self._watches: dict[int, Entry] = {}
        self._link = _Link.IDLE
        self._server = 0
        # Of the open stream: whether it brought a response, and whether a request was written.
        self._answered = False
        self._spoke = False
        # Attempts in a row that brought no response (A57).
        self._failures = 0
        self._outage = OK
        self._up: dict[int, bool] = {}

    # The shell's side.

    def handle(self, event: Event, now: float) -> tuple[Effect, ...]:
        """Take an event in and return the effects that the caller carries out now. `now` is in seconds on a clock that
        only goes forward.
        """
        return tuple(self._handle(event, now))

    def request(self) -> Request | None:
        """The next request to write, which the engine then treats as sent; None when there is none."""
        if self._link is not _Link.OPEN:
            return None
        for part in self._types.values():
            if part.due:
                prove, self._spoke = not self._spoke, True
                return part.compose(self._server, prove=prove)
        return None

    def deadline(self) -> float:
        """The time at which the caller must send a Tick, in seconds on the clock of `handle`; inf when no timer
        runs.
        """
        return min((part.deadline() for part in self._types.values()), default=inf)

    def entries(self) -> Mapping[ResourceKey, CacheEntry]:
        """Every watched resource at one moment. The members of a collection are included; the collection itself only
        while the server has not answered for it, or it is in error.
        """
        return {
            entry.key: entry.snapshot()
            for part in self._types.values()
            for entry in part.entries.values()
            if entry.watched and not (isinstance(entry, Collection) and not entry.shown)
        }

    @property
    def server(self) -> int:
        """The index of the server in use in the list of servers."""
        return self._server

    # Events.

    def _handle(self, event: Event, now: float) -> Iterator[Effect]:
        match event:
            case WatchStarted():
                yield from self._watch_started(event, now)
            case WatchStopped():
                yield from self._watch_stopped(event)
            case StreamOpened():
                yield from self._opened()
            case RequestWritten():
                self._written(event.request, now)
            case Response():
                yield from self._response(event, now)
            case StreamClosed():
                yield from self._closed(event.status)
            case ChannelFailed():
                yield from self._channel_failed(event.status)
            case Tick():
                yield from self._tick(now)
            case _:
                assert_never(event)

    def _watch_started(self, event: WatchStarted, now: float) -> Iterator[Effect]:
        part = self._types.get(event.kind.url)
        if part is None or event.watch in self._watches:
            return
        is_new = event.name not in part.entries
        entry = self._watches[event.watch] = part.join(event.name, event.watch, now)
        if is_new:
            entry.lost(self._outage)
        # A88, "New Watchers Started After Ambient Errors": the resource, then the error.
        for each in part.with_members(entry):
            yield from each.tell()
        if self._link is _Link.IDLE:
            yield self._connect(0, self._wait_s() if self._failures else 0.0)

    def _watch_stopped(self, event: WatchStopped) -> Iterator[Effect]:
        entry = self._watches.pop(event.watch, None)
        if entry is None:
            return
        self._types[entry.key.kind.url].leave(entry, event.watch)
        if not self._watches:
            self._end_stream()
            self._link = _Link.IDLE
            yield Disconnect()

    def _opened(self) -> Iterator[Effect]:
        if self._link is not _Link.CONNECTING:
            return
        self._link = _Link.OPEN
        # A78: connected from the start, until a failure; after one, from the first response.
        if self._server not in self._up:
            yield from self._connectivity(up=True)

    def _written(self, request: Request, now: float) -> None:
        if self._link is not _Link.OPEN:
            return
        part = self._types.get(request.kind.url)
        names = request.names if isinstance(request, SotwRequest) else request.subscribe
        if part is not None:
            part.written(names, self._policies[self._server], now)

    def _response(self, response: Response, now: float) -> Iterator[Effect]:
        if self._link is not _Link.OPEN:
            return
        # A57: a response, whatever is in it, proves that the server is there.
        recovered, self._outage = not self._outage.ok, OK
        self._answered = True
        self._failures = 0
        yield from self._connectivity(up=True)
        part = self._types.get(response.type_url)
        if part is None:
            yield Violated("D7", f"a response of the type '{response.type_url}', which nobody asked for")
        else:
            taken = part.take(response, self._server, self._policies[self._server], now)
            yield Updates(part.kind, taken.valid, taken.invalid)
            for entry in taken.touched.values():
                yield from entry.tell()
            yield from taken.gone
            for collection in taken.collections.values():
                yield from collection.tell()
        if recovered:
            yield from self._regain()

    def _closed(self, status: Status) -> Iterator[Effect]:
        if self._link is _Link.IDLE:
            return
        answered = self._answered
        self._end_stream()
        if answered:
            # A57: a stream that brought something may end; nobody is told.
            yield self._connect(0, _FIRST_WAIT_S)
            return
        yield from self._attempt_failed(f"the stream to the xDS server ended before any response: {status}")

    def _channel_failed(self, status: Status) -> Iterator[Effect]:
        text = f"the xDS server cannot be reached: {status}"
        if self._link is _Link.CONNECTING:
            yield from self._attempt_failed(text)
        elif self._link is _Link.OPEN:
            yield from self._connectivity(up=False)
            # With another server to try, the end of this stream leads there and nobody is told.
            if not self._has_alternative():
                yield from self._fail(text)

    def _attempt_failed(self, text: str) -> Iterator[Effect]:
        """Go on after a stream that brought no response, or after no stream could be opened: try the next server, or
        wait and begin with the first again (A57). `text` says what failed.
        """
        yield from self._connectivity(up=False)
        if self._has_alternative():
            yield self._connect(self._server + 1, 0.0)
            return
        self._failures += 1
        yield from self._fail(text)
        yield self._connect(0, self._wait_s())

    def _tick(self, now: float) -> Iterator[Effect]:
        for part in self._types.values():
            for entry in part.expire(self._policies[self._server], now):
                yield from entry.tell()
            yield from part.sweep(now)

    # The stream.

    def _connect(self, server: int, after_s: float) -> Connect:
        self._link = _Link.CONNECTING
        self._server = server
        return Connect(server, after_s)

    def _end_stream(self) -> None:
        self._answered = self._spoke = False
        for part in self._types.values():
            part.closed()

    def _has_alternative(self) -> bool:
        """Whether to try the next server: there is one, and a watched resource is not cached. While all are cached,
        they are used on without another server (A71).
        """
        more = self._server + 1 < len(self._policies)
        return more and any(part.lacks_something for part in self._types.values())

    def _wait_s(self) -> float:
        return min(_FIRST_WAIT_S * _WAIT_FACTOR ** (self._failures - 1), _LONGEST_WAIT_S)

    def _fail(self, text: str) -> Iterator[Effect]:
        """Give every resource a transient error with this text (A88, "Handling Transient Errors"), and yield the news
        for watchers.
        """
        self._outage = Status(StatusCode.UNAVAILABLE, text)
        for part in self._types.values():
            for entry in part.entries.values():
                entry.lost(self._outage)
                yield from entry.tell()

    def _regain(self) -> Iterator[Effect]:
        for part in self._types.values():
            for entry in part.entries.values():
                entry.regained()
                yield from entry.tell()

    def _connectivity(self, *, up: bool) -> Iterator[Effect]:
        if self._up.get(self._server) is not up:
            self._up[self._server] = up
            yield Connectivity(self._server, up)
