"""Liveness, readiness and metrics over HTTP, for orchestrators and Prometheus. Says nothing about clients or content.

A small server of its own: three fixed paths, one request a connection, everything bounded.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from adsserver.config import AdsConfigError, host_and_port
from xdscore.build import BUILD_VERSION, build_info

_HEAD_LIMIT_BYTES = 8 * 1024
_HEAD_WAIT_S = 5.0
_MAX_CONNECTIONS = 64

_TEXT = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this process should be sent clients: `reasons` say why not, `warnings` what is wrong all the same."""

    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    loaded: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Ready is what nothing speaks against."""
        return not self.reasons

    def as_json(self) -> bytes:
        """The body of /readyz."""
        loaded = {key: {"lineage": lineage, "epoch": epoch} for key, (lineage, epoch) in sorted(self.loaded.items())}
        body = {
            "ready": self.ready,
            "version": BUILD_VERSION,
            "reasons": self.reasons,
            "warnings": self.warnings,
            "environments": loaded,
        }
        return json.dumps(body).encode() + b"\n"


class StatusHttp:
    """The status server of a process. `readiness` and `metrics` are asked on each request and answer at once."""

    def __init__(self, address: str, readiness: Callable[[], Readiness], metrics: Callable[[], bytes]) -> None:
        self._address = address
        self._readiness = readiness
        self._metrics = metrics
        self._connections = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen; the port. Raises AdsConfigError with one sentence when the address cannot be had."""
        host, port = host_and_port(self._address)
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=_HEAD_LIMIT_BYTES)
        except OSError as error:
            raise AdsConfigError(
                f"The address {self._address} (PARLEY_ADS_METRICS_ADDRESS) cannot be used: {error.strerror}."
            ) from error
        taken: int = self._server.sockets[0].getsockname()[1]
        return taken

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= _MAX_CONNECTIONS:
                # Head, answer and goodbye within one bound: a slow peer costs a place for this long only.
                async with asyncio.timeout(_HEAD_WAIT_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            self._connections -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response(HTTPStatus.BAD_REQUEST, _TEXT, b"This is not an HTTP request.\n")
        method, path = words[0], words[1].split(b"?", 1)[0]
        if method not in {b"GET", b"HEAD"}:
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"Only GET is answered here.\n")
        answer = self._page(path)
        return answer if method == b"GET" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    def _page(self, path: bytes) -> bytes:
        match path:
            case b"/healthz":
                return _response(HTTPStatus.OK, _TEXT, b"ok\n")
            case b"/readyz":
                readiness = self._readiness()
                status = HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE
                return _response(status, _JSON, readiness.as_json())
            case b"/metrics":
                told = self._metrics() + readiness_metrics(self._readiness()) + build_info("ads")
                return _response(HTTPStatus.OK, _METRICS, told)
            case _:
                return _response(HTTPStatus.NOT_FOUND, _TEXT, b"Here are /healthz, /readyz and /metrics.\n")


def readiness_metrics(readiness: Readiness) -> bytes:
    """What /readyz says, as figures: alerts go by them."""
    registry = CollectorRegistry()
    ready = Gauge("parley_ads_ready", "1 when clients should be sent here.", registry=registry)
    ready.set(readiness.ready)
    degraded = Gauge(
        "parley_ads_degraded",
        "1 when it serves, and something is wrong all the same; /readyz says what.",
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
