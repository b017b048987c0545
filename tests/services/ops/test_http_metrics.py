"""What is counted of requests: a bare ASGI application behind the counter."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controlplane.ops.http_metrics import HttpMetrics, Message, Receive, Send


async def nothing() -> Message:
    return {"type": "http.disconnect"}


async def nowhere(_message: Message) -> None:
    pass


def answering(status: int) -> tuple[HttpMetrics, CollectorRegistry]:
    async def application(_scope: Message, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    registry = CollectorRegistry()
    return HttpMetrics(application, registry), registry


@pytest.mark.parametrize(
    ("path", "query", "surface"),
    [
        ("/api/v1/environments", b"", "api"),
        ("/api/v1/changes/1", b"wait=30s", "wait"),
        ("/static/app.css", b"", "static"),
        ("/readyz", b"", "probe"),
        ("/incidents/", b"", "console"),
    ],
)
async def test_request__of_a_surface__is_counted_there(path: str, query: bytes, surface: str) -> None:
    counted, registry = answering(204)

    await counted({"type": "http", "path": path, "query_string": query}, nothing, nowhere)

    labels = {"surface": surface, "class": "2xx"}
    assert registry.get_sample_value("parley_http_requests_total", labels) == 1
    assert registry.get_sample_value("parley_http_request_seconds_count", {"surface": surface}) == 1


async def test_request__application_fails_or_caller_leaves__is_counted_as_without_an_answer() -> None:
    async def application(_scope: Message, _receive: Receive, _send: Send) -> None:
        raise asyncio.CancelledError

    registry = CollectorRegistry()
    counted = HttpMetrics(application, registry)

    with pytest.raises(asyncio.CancelledError):
        await counted({"type": "http", "path": "/", "query_string": b""}, nothing, nowhere)

    assert registry.get_sample_value("parley_http_requests_total", {"surface": "console", "class": "none"}) == 1


async def test_other_protocols__pass_uncounted() -> None:
    seen: list[str] = []

    async def application(scope: Message, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    registry = CollectorRegistry()
    await HttpMetrics(application, registry)({"type": "lifespan"}, nothing, nowhere)

    assert seen == ["lifespan"]
    assert registry.get_sample_value("parley_http_requests_total", {"surface": "console", "class": "none"}) is None
