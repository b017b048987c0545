"""Liveness, readiness and metrics over HTTP, for orchestrators and Prometheus: the same small server in every role.

Three fixed paths, one request a connection, everything bounded. It does not look at the Host of a request: who reaches
its address, by whatever name, is a probe or a scraper. Says nothing about clients or content.
"""

import asyncio
import errno
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from xdscore.build import BUILD_VERSION, build_info

T = TypeVar("T")

_HEAD_LIMIT_BYTES = 8 * 1024
_HEAD_WAIT_S = 5.0
_ANSWER_WAIT_S = 10.0  # Prometheus gives a scrape up after as long (scrape_timeout)
_MAX_CONNECTIONS = 64
_THREADS = 4

_TEXT = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_JSON = "application/json"


class StatusAddressError(Exception):
    """The server for health and metrics cannot listen at its configured address. The text is for whoever starts the
    process.
    """


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this process can do its work: `reasons` say why not (empty: it can), `warnings` what is wrong although it
    can.

    `loaded`: (lineage, epoch) of the snapshot that each environment is served from; None in a process that serves none.
    """

    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    loaded: Mapping[str, tuple[str, int]] | None = None

    @property
    def ready(self) -> bool:
        """Whether the process can do its work: there are no `reasons`."""
        return not self.reasons

    def as_json(self) -> bytes:
        """The JSON body of /readyz."""
        body: dict[str, object] = {
            "ready": self.ready,
            "version": BUILD_VERSION,
            "reasons": self.reasons,
            "warnings": self.warnings,
        }
        if self.loaded is not None:
            loaded = sorted(self.loaded.items())
            body["environments"] = {key: {"lineage": lineage, "epoch": epoch} for key, (lineage, epoch) in loaded}
        return json.dumps(body).encode() + b"\n"


class StatusHttp:
    """The HTTP server for health, readiness and metrics of a process, on the event loop that starts it. `role` is that
    of the process; it is part of the names of the metrics and of the variable with the server's address:
    PARLEY_<ROLE>_METRICS_ADDRESS.

    `readiness` and `metrics` are called on each request. With `waits` they may block, and are called in threads of the
    server's own; without it they must return at once, because the event loop waits for them.
    """

    def __init__(
        self,
        *,
        role: str,
        host: str,
        port: int,
        readiness: Callable[[], Readiness],
        metrics: Callable[[], bytes],
        waits: bool = False,
    ) -> None:
        self._role = role
        self._host, self._port = host, port
        self._readiness = readiness
        self._metrics = metrics
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="status") if waits else None
        self._connections = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Begin to listen and return the port. Raises StatusAddressError with what is wrong and what to do."""
        try:
            self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=_HEAD_LIMIT_BYTES)
        except OSError as error:
            raise StatusAddressError(self._refused(error)) from error
        taken: int = self._server.sockets[0].getsockname()[1]
        return taken

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The file descriptors of the listening sockets."""
        return tuple(each.fileno() for each in self._server.sockets) if self._server is not None else ()

    async def stop(self) -> None:
        """Stop listening, and start no more answers."""
        if self._server is not None:
            self._server.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _refused(self, error: OSError) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        variable = f"PARLEY_{self._role.upper()}_METRICS_ADDRESS"
        sentence = f"The address {host}:{self._port} ({variable}) cannot be used: {error.strerror}."
        if error.errno == errno.EADDRINUSE:
            return f"{sentence} Set {variable} to a free one; each process on a machine needs its own."
        return sentence

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= _MAX_CONNECTIONS:
                # A slow peer costs a place for this long only.
                async with asyncio.timeout(_HEAD_WAIT_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                async with asyncio.timeout(_ANSWER_WAIT_S):
                    writer.write(await self._answer(head))
                    await writer.drain()
        except TimeoutError:
            writer.transport.abort()  # a goodbye would wait for a peer that does not read
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            self._connections -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response(HTTPStatus.BAD_REQUEST, _TEXT, b"This is not an HTTP request.\n")
        method, path = words[0], words[1].split(b"?", 1)[0]
        if method not in {b"GET", b"HEAD"}:
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"Only GET is answered here.\n")
        answer = await self._page(path)
        return answer if method == b"GET" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    async def _page(self, path: bytes) -> bytes:
        match path:
            case b"/healthz":
                return _response(HTTPStatus.OK, _TEXT, b"ok\n")
            case b"/readyz":
                readiness = await self._asked(self._readiness)
                status = HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE
                return _response(status, _JSON, readiness.as_json())
            case b"/metrics":
                return _response(HTTPStatus.OK, _METRICS, await self._asked(self._figures))
            case _:
                return _response(HTTPStatus.NOT_FOUND, _TEXT, b"Here are /healthz, /readyz and /metrics.\n")

    def _figures(self) -> bytes:
        return self._metrics() + readiness_metrics(self._role, self._readiness()) + build_info(self._role)

    async def _asked(self, question: Callable[[], T]) -> T:
        if self._threads is None:
            return question()
        return await asyncio.get_running_loop().run_in_executor(self._threads, question)


def readiness_metrics(role: str, readiness: Readiness) -> bytes:
    """The content of /readyz as Prometheus metrics, for alerts."""
    registry = CollectorRegistry()
    ready = Gauge(
        f"parley_{role}_ready", "1 when this process can do its work; /readyz says why not.", registry=registry
    )
    ready.set(readiness.ready)
    degraded = Gauge(
        f"parley_{role}_degraded",
        "1 when it does, and something is wrong all the same; /readyz says what.",
        registry=registry,
    )
    degraded.set(bool(readiness.warnings))
    return generate_latest(registry)


def _response(status: HTTPStatus, content_type: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"Content-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
