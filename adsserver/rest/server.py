"""The HTTP port of one process: its connections, how many there may be, and how they end. Started by `running`."""

import asyncio
import socket
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

import structlog

from adsserver.config import AdsConfigError, host_and_port
from adsserver.identity.tls import HttpsContext
from adsserver.rest.answering import Answering
from adsserver.rest.exchange import Exchanges, GoneError
from adsserver.rest.peer import HttpPeer, peer_text, properties_of
from adsserver.rest.problems import Problem
from xdscore.callers import CallerKey, caller_key
from xdscore.limits import Limits
from xdscore.token_bucket import TokenBucket

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_BACKLOG = 1_024


@dataclass(eq=False, slots=True)
class _Connection:
    """`holder`: the address that it comes from; once a poll was answered, the identity, if there is one."""

    writer: asyncio.StreamWriter
    task: "asyncio.Task[None]"
    holder: CallerKey
    closing: bool = False


class RestServer:
    """Serves polls over HTTP. `tls`: None for plain connections. To be used on the event loop."""

    def __init__(self, answering: Answering, limits: Limits, tls: HttpsContext | None) -> None:
        self._answering = answering
        self._limits = limits
        self._tls = tls
        self._socket: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()
        # Those between two requests, the one that has been so for longest first.
        self._idle: dict[_Connection, None] = {}

    def bind(self, address: str, *, shared_port: bool) -> int:
        """Take the port; returns its number. Raises AdsConfigError with one sentence when it cannot be had."""
        host, port = host_and_port(address)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, kind, protocol, _, target = found[0]
            taken = socket.socket(family, kind, protocol)
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared_port:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            taken.bind(target)
        except OSError as error:
            raise AdsConfigError(
                f"The address {address} (PARLEY_ADS_REST_ADDRESS) cannot be used: {error.strerror}."
            ) from error
        self._socket = taken
        number: int = taken.getsockname()[1]
        return number

    async def start(self) -> None:
        """Accept connections at the port that was taken."""
        self._server = await asyncio.start_server(self._serve, sock=self._socket, backlog=_BACKLOG)

    async def stop(self, limit_s: float) -> None:
        """Take no more connections, close those between two requests, and give the others `limit_s` seconds."""
        if self._server is None:
            return
        self._server.close()
        for connection in tuple(self._open):
            connection.closing = True
            if connection in self._idle:
                connection.task.cancel()
        tasks = {connection.task for connection in self._open}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=limit_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def open_connections(self) -> int:
        """The number of connections that are open now."""
        return len(self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or not self._has_room():
            writer.transport.abort()
            return
        where = peer_text(writer.get_extra_info("peername"))
        connection = _Connection(writer, task, caller_key("", where))
        self._open.add(connection)
        try:
            await self._talk(connection, reader, where)
        except (GoneError, ConnectionError, ssl.SSLError, TimeoutError):
            writer.transport.abort()
        except asyncio.CancelledError:
            # By `stop`, or to make room: the peer sees that the connection ends, and comes again.
            writer.transport.abort()
        except Exception:
            log.exception("rest.failed", peer=where)
            writer.transport.abort()
        finally:
            self._open.discard(connection)
            self._idle.pop(connection, None)
            writer.close()
            with suppress(OSError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()

    def _has_room(self) -> bool:
        """Whether one more connection may be open. Of whom has most, the one that has been idle for longest makes room
        for it.
        """
        if len(self._open) < self._limits.rest_connections:
            return True
        if not self._idle:
            return False
        held = Counter(each.holder for each in self._open)
        loser = max(self._idle, key=lambda each: held[each.holder])
        del self._idle[loser]
        loser.task.cancel()
        return True

    async def _talk(self, connection: _Connection, reader: asyncio.StreamReader, where: str) -> None:
        writer, limits = connection.writer, self._limits
        if self._tls is not None:
            await writer.start_tls(self._tls.current(), ssl_handshake_timeout=limits.handshake_timeout_ms / 1000)
        # What is written is taken by the peer before anything else is done (performance.md law 4).
        writer.transport.set_write_buffer_limits(high=0)
        properties = properties_of(writer.get_extra_info("ssl_object"))
        exchanges = Exchanges(reader, writer, limits)
        loop = asyncio.get_running_loop()
        bucket = TokenBucket(limits.requests_per_s, limits.request_burst, loop.time())
        idle_s: float = limits.first_request_ms / 1000
        unproven = None
        while not connection.closing:
            await asyncio.sleep(bucket.take(loop.time()))
            self._idle[connection] = None
            try:
                head = await exchanges.head(idle_s)
            except Problem as problem:
                await exchanges.turn_down(problem)
                return
            finally:
                self._idle.pop(connection, None)
            if head is None:
                return
            if unproven is not None:
                # Whoever asks the next thing has read the answer to the last.
                unproven.received()
                unproven = None
            try:
                reply = await self._answering.reply(exchanges, head, HttpPeer(properties, head.headers), where)
            except Problem as problem:
                goes_on = await exchanges.turn_down(problem)
            else:
                goes_on = await exchanges.answer(reply.status, reply.body, reply.headers, ends=connection.closing)
                unproven = reply.given
                connection.holder = caller_key(reply.given.polled.key.identity, where)
            if not goes_on:
                return
            # Who polls every few minutes keeps its connection: by it is known which answers were read (L4).
            idle_s = limits.connection_age_s
