"""One list of servers: an engine and the stream it asks for, over grpc.aio. Decides nothing; carries effects out.

The engine's state is current after every `send`; what watchers should hear goes to `hear` and is called by the client
later, so that nobody is called from within their own call.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

import grpc

from xdsclient.bootstrap import Server
from xdsclient.channels import CredentialsError, call_metadata, open_channel
from xdsclient.engine.engine import Engine
from xdsclient.engine.events import (
    Ambient,
    ChannelFailed,
    Connect,
    Connectivity,
    Deliver,
    Disconnect,
    Effect,
    Event,
    Gone,
    News,
    RequestWritten,
    StreamClosed,
    StreamOpened,
    Tick,
    Updates,
    Variant,
    Violated,
)
from xdsclient.engine.values import Status, StatusCode
from xdsclient.metrics import Metrics
from xdsclient.wire import METHODS, MalformedResponseError, Wire

log = logging.getLogger(__name__)

# gRPC's connection back-off: every wait is up to a fifth longer or shorter, so that clients do not come back together.
_JITTER = 0.2
# How long a server has to end a stream that the client will say no more on.
_FAREWELL_S = 0.5
_CONNECTED = (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE)

# grpc.aio's calls, whose stubs ask for serialisers that gRPC does not need.
Call = Any


class Link:
    """The stream to one server of a list of servers, and the cache of the resources that came from any of them."""

    def __init__(
        self,
        servers: tuple[Server, ...],
        engine: Engine,
        wire: Wire,
        variant: Variant,
        *,
        target: str,
        metrics: Metrics,
        hear: Callable[[News], None],
    ) -> None:
        self.servers = servers
        self.engine = engine
        self._wire = wire
        self._method = METHODS[variant]
        self._target = target
        self._metrics = metrics
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._attempt: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._is_talking = False
        self._is_leaving = False
        # Set whenever the engine may have a request to write.
        self._moved = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_is_checked = False

    def send(self, event: Event) -> None:
        """Hand an event to the engine and carry out its effects."""
        for effect in self.engine.handle(event, self._loop.time()):
            self._carry_out(effect)
        self._moved.set()
        if not self._timer_is_checked:
            self._timer_is_checked = True
            self._loop.call_soon(self._set_timer)

    async def finish(self) -> None:
        """Write the requests that are due and let the server read them, because cancelling the call may lose the last
        ACK or NACK. Responses that arrive from now on are ignored.
        """
        attempt = self._attempt
        if attempt is not None and self._is_talking:
            self._is_leaving = True
            self._moved.set()
            await asyncio.wait([attempt], timeout=_FAREWELL_S)

    async def close(self) -> None:
        """End the stream. The client sends nothing after this."""
        self._end_attempt()
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)

    # Effects.

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Deliver() | Ambient() | Gone():
                self._hear(effect)
            case Connect():
                self._end_attempt()
                self._begin_attempt(effect)
            case Disconnect():
                self._end_attempt()
            case Updates():
                self._metrics.updates(
                    target=self._target,
                    server=self._uri(self.engine.server),
                    resource_type=effect.kind.message,
                    valid=effect.valid,
                    invalid=effect.invalid,
                )
            case Connectivity():
                uri = self._uri(effect.server)
                self._metrics.connected(target=self._target, server=uri, value=effect.up)
                if not effect.up:
                    self._metrics.server_failure(target=self._target, server=uri)
            case Violated():
                log.warning("%s broke rule %s: %s", self._uri(self.engine.server), effect.rule, effect.detail)

    def _uri(self, server: int) -> str:
        return self.servers[server].uri

    # The timer.

    def _set_timer(self) -> None:
        """Set the one timer to the engine's earliest deadline; called once for all events that were sent in one turn of
        the event loop.
        """
        self._timer_is_checked = False
        deadline = self.engine.deadline()
        if self._timer is not None:
            if self._timer.when() == deadline and not self._timer.cancelled():
                return
            self._timer.cancel()
            self._timer = None
        if deadline != inf:
            self._timer = self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.send(Tick())

    # The stream.

    def _begin_attempt(self, effect: Connect) -> None:
        self._attempt = self._loop.create_task(self._run(self.servers[effect.server], effect.after_s))
        self._ending.add(self._attempt)
        self._attempt.add_done_callback(self._ending.discard)

    def _end_attempt(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is not None and attempt is not asyncio.current_task():
            attempt.cancel()

    def _send_from(self, attempt: "asyncio.Task[None] | None", event: Event) -> bool:
        """Send an event that the task `attempt` observed, unless another task has taken its place; return whether it is
        still the current one.
        """
        if attempt is not self._attempt:
            return False
        self.send(event)
        return attempt is self._attempt

    async def _run(self, server: Server, after_s: float) -> None:
        if after_s:
            await asyncio.sleep(after_s * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311 - no secret
        me = asyncio.current_task()
        try:
            metadata = call_metadata(server)
            channel = open_channel(server)
        except CredentialsError as error:
            self._send_from(me, ChannelFailed(Status(StatusCode.UNAUTHENTICATED, str(error))))
            return
        event: ChannelFailed | StreamClosed
        try:
            event = await self._converse(channel, metadata, me)
        except Exception:
            # Whatever it is, it must not be the end of the link: another stream may do better.
            log.exception("the stream to %s failed", server.uri)
            event = StreamClosed(Status(StatusCode.INTERNAL, "the client failed to handle the stream"))
        finally:
            await channel.close(None)
        if not self._is_leaving:
            self._send_from(me, event)

    async def _converse(
        self, channel: grpc.aio.Channel, metadata: object, me: "asyncio.Task[None] | None"
    ) -> ChannelFailed | StreamClosed:
        """Connect, then read and write until the stream ends; return the event that says how it ended. `me` is the task
        that runs this.
        """
        state = channel.get_state(try_to_connect=True)
        while state not in _CONNECTED:
            await channel.wait_for_state_change(state)
            state = channel.get_state(try_to_connect=True)
        untyped: Any = channel
        call: Call = untyped.stream_stream(self._method)(metadata=metadata)
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            # Fails at once, and says why there is no connection.
            return ChannelFailed(await _ending_of(call))
        if not self._send_from(me, StreamOpened()):
            call.cancel()
            return StreamClosed(Status(StatusCode.CANCELLED))
        writing = self._loop.create_task(self._write(call, me))
        self._is_talking = True
        try:
            return StreamClosed(await self._read(call, me))
        finally:
            self._is_talking = False
            writing.cancel()
            call.cancel()

    async def _read(self, call: Call, me: "asyncio.Task[None] | None") -> Status:
        while True:
            try:
                data = await call.read()
            except grpc.aio.AioRpcError:
                return await _ending_of(call)
            if not isinstance(data, bytes):
                return await _ending_of(call)
            if self._is_leaving:
                continue
            try:
                response = self._wire.response(data)
            except MalformedResponseError as error:
                return Status(StatusCode.INTERNAL, str(error))
            if not self._send_from(me, response):
                return Status(StatusCode.CANCELLED)

    async def _write(self, call: Call, me: "asyncio.Task[None] | None") -> None:
        first = True
        while True:
            self._moved.clear()
            while me is self._attempt and (request := self.engine.request()) is not None:
                try:
                    await call.write(self._wire.request(request, first=first))
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    return  # the reader learns how the stream ended
                except Exception:
                    log.exception("a request cannot be written")
                    call.cancel()
                    return
                first = False
                self._send_from(me, RequestWritten(request))
            if self._is_leaving:
                with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await call.done_writing()
                return
            await self._moved.wait()


async def _ending_of(call: Call) -> Status:
    code: grpc.StatusCode = await call.code()
    details: str | None = await call.details()
    number: int = code.value[0]
    return Status(number, details or "")
