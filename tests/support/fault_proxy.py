"""A TCP proxy on loopback that a test cuts: connections are reset and refused, or stay and carry nothing."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

P = TypeVar("P", bound="FaultProxy")

_START_S = 10.0
_CHUNK_BYTES = 65_536


class FaultProxy:
    """One port that leads to another. Its methods may be called from any thread; they return when they have taken
    effect.
    """

    def __init__(self, target_port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.port = 0
        self._target_port = target_port
        self._loop = loop
        self._refuses = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()

    def reset(self) -> None:
        """Reset every connection, and new ones, until `heal`."""
        self._wait(self._reset())

    def silence(self) -> None:
        """Keep connections and accept new ones, but carry nothing until `heal`."""
        self._wait(self._silence())

    def heal(self) -> None:
        """Forward connections again; what was held back meanwhile arrives."""
        self._wait(self._heal())

    async def listen(self) -> None:
        """Accept connections from now on, on a free port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    async def _reset(self) -> None:
        self._refuses = True
        for writer in self._writers:
            writer.transport.abort()

    async def _silence(self) -> None:
        self._flows.clear()

    async def _heal(self) -> None:
        self._refuses = False
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self._refuses:
                return
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
            self._writers.add(there_writer)
            try:
                back = self._pump(there_reader, writer, self.carries)
                await asyncio.gather(self._pump(reader, there_writer), back)
            finally:
                self._writers.discard(there_writer)
                there_writer.transport.abort()
        except (OSError, asyncio.CancelledError):
            # Asyncio reports a server's task that was cancelled as an error.
            pass  # the target is not there, or somebody reset it: the other side learns the same
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    def carries(self, data: bytes) -> None:
        """Hear of bytes that go from the target to who connected; a proxy that listens overrides it."""

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, carries: Callable[[bytes], None] | None = None
    ) -> None:
        while data := await reader.read(_CHUNK_BYTES):
            await self._flows.wait()
            if carries is not None:
                carries(data)
            writer.write(data)
            await writer.drain()
        await self._flows.wait()
        with suppress(OSError):
            writer.write_eof()


@contextmanager
def fault_proxies(*target_ports: int) -> Iterator[list[FaultProxy]]:
    """Run a proxy for each of these ports until the block ends."""
    with running_proxies(FaultProxy, target_ports) as proxies:
        yield proxies


@contextmanager
def running_proxies(kind: type[P], target_ports: Sequence[int]) -> Iterator[list[P]]:
    """Run a proxy of this kind for each of these ports until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        proxies = [kind(port, loop) for port in target_ports]
        for proxy in proxies:
            asyncio.run_coroutine_threadsafe(proxy.listen(), loop).result(_START_S)
        yield proxies
    finally:
        asyncio.run_coroutine_threadsafe(_end_everything(), loop).result(_START_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_START_S)
        loop.close()


async def _end_everything() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
