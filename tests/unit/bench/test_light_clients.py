"""The clients of the benchmark that write frames by hand, against a server of gRPC."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from bench.light_clients import LightClient
from bench.receivers import DELTA, SOTW

LARGE = b"x" * 200_000  # several frames


@asynccontextmanager
async def server(path: str, behaviour: Any) -> AsyncIterator[str]:
    _, service, method = path.split("/")
    running = grpc.aio.server()
    handlers = {method: grpc.stream_stream_rpc_method_handler(behaviour)}
    running.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = running.add_insecure_port("127.0.0.1:0")
    await running.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await running.stop(None)


def until_ended(client: LightClient) -> str:
    """Take all that comes until the stream ends; returns how it ended."""
    client.socket.settimeout(10)
    while True:
        try:
            client.take()
        except ConnectionError as error:
            return str(error)


@pytest.mark.parametrize("path", [SOTW, DELTA])
async def test_client__of_a_grpc_server__takes_whole_responses_and_answers_each(path: str) -> None:
    said: list[bytes] = []
    received: list[bytes] = []

    async def serve(requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
        for response in (b"one", LARGE, b"three"):
            said.append(await anext(requests))
            yield response
        said.append(await anext(requests))

    async with server(path, serve) as address:

        def answer(response: bytes) -> bytes:
            received.append(response)
            return f"ack {len(received)}".encode()

        client = await asyncio.to_thread(LightClient, address, path, b"first", answer)
        how = await asyncio.to_thread(until_ended, client)
        client.socket.close()

    assert how.startswith("a stream ended")
    assert received == [b"one", LARGE, b"three"]
    assert said == [b"first", b"ack 1", b"ack 2", b"ack 3"]
