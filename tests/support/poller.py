"""A client that polls over REST, spoken by hand: bytes of HTTP in and out, so that hostile ones can be tried."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

NODE = {"id": "client-1", "cluster": "fleet", "user_agent_name": "envoy"}


@dataclass(frozen=True)
class Got:
    """An answer over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def names(self) -> list[str]:
        return [each.get("name", each.get("cluster_name")) for each in self.json["resources"]]

    @property
    def errors(self) -> dict[str, str]:
        return {
            each["resource_name"]["name"]: each["error_detail"]["message"]
            for each in self.json.get("resource_errors", [])
        }


@dataclass
class Poller:
    """One connection. `version` is what it says that it has; `ask` accepts what it is given unless told otherwise."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    version: str = ""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def got(self) -> Got:
        async with asyncio.timeout(10):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Got(int(first.split(" ")[1]), headers, body)

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Got:
        given = {"Content-Type": "application/json", "Host": "ads", **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        await self.send(f"POST {path} HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return await self.got()

    async def ask(
        self,
        what: str,
        *names: str,
        takes: bool = True,
        headers: Mapping[str, str] | None = None,
        node: Mapping[str, object] = NODE,
        **fields: object,
    ) -> Got:
        tree = {"node": dict(node), "resource_names": list(names), "version_info": self.version, **fields}
        got = await self.post(f"/v3/discovery:{what}", json.dumps(tree).encode(), headers)
        if takes and got.status == 200:
            self.version = got.json["version_info"]
        return got

    async def ended(self) -> bool:
        """Whether the server closed the connection, within some seconds."""
        async with asyncio.timeout(10):
            return await self.reader.read() == b""


@asynccontextmanager
async def poller(port: int, tls: ssl.SSLContext | None = None, name: str | None = None) -> AsyncIterator[Poller]:
    """A connection to this port of the loopback address, until the block ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
    try:
        yield Poller(reader, writer)
    finally:
        writer.close()
