"""How the supervisor sees that a process really serves, not merely that it runs."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from controlplane.config.values import Address

Probe = Callable[[], Awaitable[bool]]

_PROBE_WAIT_S: Final = 2.0
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  what listens everywhere is asked here


def http_ready(address: Address, path: str) -> Probe:
    """A probe that succeeds when GET of this path is answered with 200."""
    host = _LOOPBACK.get(address.host, address.host)

    async def probe() -> bool:
        reader, writer = await asyncio.open_connection(host, address.port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("ascii"))
            await writer.drain()
            return (await reader.readline()).split(b" ")[1:2] == [b"200"]
        finally:
            writer.close()

    return _bounded(probe)


def valkey_ready(socket: Path) -> Probe:
    """A probe that succeeds when PING is answered with PONG."""

    async def probe() -> bool:
        reader, writer = await asyncio.open_unix_connection(str(socket))
        try:
            writer.write(b"PING\r\n")
            await writer.drain()
            return await reader.readline() == b"+PONG\r\n"
        finally:
            writer.close()

    return _bounded(probe)


def file_ready(file: Path) -> Probe:
    """A probe that succeeds when the process has written this file; who starts the process removes it first."""

    async def probe() -> bool:
        return file.exists()  # noqa: ASYNC240  one look at a local directory

    return probe


def _bounded(probe: Probe) -> Probe:
    async def bounded() -> bool:
        try:
            async with asyncio.timeout(_PROBE_WAIT_S):
                return await probe()
        except (OSError, TimeoutError):
            return False

    return bounded
