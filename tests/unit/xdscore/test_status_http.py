"""The status port: its three pages, and what it does with everything else."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator

import pytest

from xdscore.build import BUILD_VERSION, build_info
from xdscore.status_http import Readiness, StatusAddressError, StatusHttp


class Ready:
    """What the server under test answers from."""

    def __init__(self) -> None:
        self.readiness = Readiness(("no snapshot",), loaded={})
        self.port = 0

    def metrics(self) -> bytes:
        return b"parley_up 1\n"


@pytest.fixture
async def ready() -> AsyncIterator[Ready]:
    state = Ready()
    server = status_of(state)
    state.port = await server.start()
    yield state
    await server.stop()


def status_of(state: Ready, port: int = 0, *, waits: bool = False) -> StatusHttp:
    return StatusHttp(
        role="ads",
        host="127.0.0.1",
        port=port,
        readiness=lambda: state.readiness,
        metrics=state.metrics,
        waits=waits,
    )


async def send(port: int, data: bytes) -> tuple[bytes, bytes]:
    """Head and body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


async def get(port: int, path: str) -> tuple[int, bytes]:
    head, body = await send(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return int(head.split()[1]), body


async def test_healthz__process_runs__ok(ready: Ready) -> None:
    assert await get(ready.port, "/healthz") == (200, b"ok\n")


async def test_readyz__something_is_missing__503_with_reasons(ready: Ready) -> None:
    status, body = await get(ready.port, "/readyz")

    assert status == 503
    assert json.loads(body) == {
        "ready": False,
        "version": BUILD_VERSION,
        "reasons": ["no snapshot"],
        "warnings": [],
        "environments": {},
    }


async def test_readyz__ready__200_with_what_is_loaded(ready: Ready) -> None:
    ready.readiness = Readiness((), ("degraded: no database",), {"prod": ("lineage", 7)})

    status, body = await get(ready.port, "/readyz?verbose")

    assert status == 200
    said = json.loads(body)
    assert said["environments"] == {"prod": {"lineage": "lineage", "epoch": 7}}
    assert said["warnings"] == ["degraded: no database"]


async def test_metrics__asked__text_of_prometheus(ready: Ready) -> None:
    head, body = await send(ready.port, b"GET /metrics HTTP/1.1\r\n\r\n")

    assert b"Content-Type: text/plain; version=0.0.4" in head
    assert body.startswith(b"parley_up 1\n")
    assert {b"parley_ads_ready 0.0", b"parley_ads_degraded 0.0"} <= set(body.splitlines())
    assert body.endswith(build_info("ads"))


async def test_metrics__serves_without_its_database__ready_and_degraded(ready: Ready) -> None:
    ready.readiness = Readiness((), ("degraded: no database",))

    _, body = await get(ready.port, "/metrics")

    assert {b"parley_ads_ready 1.0", b"parley_ads_degraded 1.0"} <= set(body.splitlines())


async def test_head__of_a_page__has_no_body(ready: Ready) -> None:
    head, body = await send(ready.port, b"HEAD /healthz HTTP/1.1\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 200")
    assert b"Content-Length: 3" in head
    assert body == b""


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\x16\x03\x01 not http\r\n\r\n", 400),
    ],
)
async def test_request__not_for_us__is_answered_with_its_status(ready: Ready, request_head: bytes, status: int) -> None:
    head, _ = await send(ready.port, request_head)

    assert head.startswith(f"HTTP/1.1 {status}".encode())


async def test_request__head_without_end__connection_is_closed(ready: Ready) -> None:
    assert await send(ready.port, b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 2000) == (b"", b"")


async def test_request__peer_that_says_nothing__costs_its_place_for_a_while_only(
    ready: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xdscore.status_http._HEAD_WAIT_S", 0.1)

    assert await send(ready.port, b"GET") == (b"", b"")


async def test_start__taken_port__one_sentence(ready: Ready) -> None:
    said = (
        rf"127.0.0.1:{ready.port} \(PARLEY_ADS_METRICS_ADDRESS\) cannot be used: .*already in use.* "
        r"Set PARLEY_ADS_METRICS_ADDRESS to a free one; each process on a machine needs its own\.$"
    )
    with pytest.raises(StatusAddressError, match=said):
        await status_of(ready, ready.port).start()


async def test_readyz__of_a_role_that_serves_no_environments__does_not_speak_of_them(ready: Ready) -> None:
    ready.readiness = Readiness(warnings=("broker: does not answer",))

    _, body = await get(ready.port, "/readyz")

    assert json.loads(body).keys() == {"ready", "version", "reasons", "warnings"}


@pytest.mark.parametrize("host", ["web:9101", "10.244.3.7:9101", "[fd00::7]:9101", "", "x" * 300])
async def test_request__under_any_host__is_answered(ready: Ready, host: str) -> None:
    head, _ = await send(ready.port, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    assert head.startswith(b"HTTP/1.1 200")


async def test_metrics__that_wait_for_others__keep_no_probe_waiting() -> None:
    state, asked, answers = Ready(), threading.Event(), threading.Event()

    def waits() -> bytes:
        asked.set()
        answers.wait(30)
        return b"parley_up 1\n"

    state.metrics = waits  # type: ignore[method-assign]
    state.readiness = Readiness()
    server = status_of(state, waits=True)
    port = await server.start()
    scrape = asyncio.create_task(get(port, "/metrics"))
    try:
        await asyncio.to_thread(asked.wait, 10)
        assert [(await get(port, path))[0] for path in ("/healthz", "/readyz")] == [200, 200]
        assert not scrape.done()
    finally:
        answers.set()
        assert (await scrape)[0] == 200
        await server.stop()


async def test_metrics__that_take_too_long__end_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xdscore.status_http._ANSWER_WAIT_S", 0.1)
    state, answers = Ready(), threading.Event()
    state.metrics = lambda: str(answers.wait(30)).encode()  # type: ignore[method-assign]
    server = status_of(state, waits=True)
    port = await server.start()
    try:
        assert await send(port, b"GET /metrics HTTP/1.1\r\n\r\n") == (b"", b"")
        assert (await get(port, "/healthz"))[0] == 200
    finally:
        answers.set()
        await server.stop()
