"""Counts what this web process answers, and how long it takes: an ASGI application around everything else."""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# A request that asks to wait is as slow as what it waits for.
_WAITS: Final = b"wait="
# So is an answer that goes on: server-sent events.
_GOES_ON: Final = (b"content-type", b"text/event-stream")
_PROBES: Final = ("/healthz", "/readyz")
# Around what is promised: 50 ms for Explain, 200 ms for a list, 300 ms for a page, 2 s for an apply.
_BUCKETS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)


class HttpMetrics:
    """An ASGI application that passes requests on to another one, and counts and times them. A request whose caller
    left before the answer is counted with the status `none`.
    """

    def __init__(self, application: Application, registry: CollectorRegistry) -> None:
        self._application = application
        self._requests = Counter(
            "parley_http_requests", "Requests, by what was asked and answered.", ["surface", "class"], registry=registry
        )
        self._seconds = Histogram(
            "parley_http_request_seconds",
            "Time until an answer is complete.",
            ["surface"],
            buckets=_BUCKETS_S,
            registry=registry,
        )

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the request on, and count it, with its seconds, by its surface (such as pages or REST) and the answer's
        status.
        """
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        surface, answer = _surface(scope), "none"
        started = time.monotonic()

        async def counted(message: Message) -> None:
            nonlocal surface, answer
            if message["type"] == "http.response.start":
                answer = f"{message['status'] // 100}xx"
                if _GOES_ON in ((name.lower(), value) for name, value in message.get("headers", ())):
                    surface = "wait"
            await send(message)

        try:
            await self._application(scope, receive, counted)
        finally:
            self._requests.labels(surface, answer).inc()
            self._seconds.labels(surface).observe(time.monotonic() - started)


def _surface(scope: Message) -> str:
    if _WAITS in scope.get("query_string", b""):
        return "wait"
    path = str(scope["path"])
    if path in _PROBES:
        return "probe"
    if path.startswith("/api/"):
        return "api"
    return "static" if path.startswith("/static/") else "console"
