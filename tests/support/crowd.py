"""Many requests at the same moment: every connection is there before the first request is sent."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.stack import Answer

# As long as the slowest machine may take for the whole crowd; nothing is measured by it.
_ANSWER_S = 100.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """One HTTP request of a crowd."""

    method: str
    path: str
    body: bytes
    headers: Mapping[str, str]

    def text(self, port: int) -> bytes:
        """The bytes of the request as it is sent."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, f"Content-Length: {len(self.body)}", "", ""]).encode() + self.body


def answers_at_once(port: int, crowd: Sequence[Wanted]) -> list[Answer]:
    """Send all requests at once; the answers in the order of the requests."""
    return asyncio.run(_all(port, crowd))


async def _all(port: int, crowd: Sequence[Wanted]) -> list[Answer]:
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in crowd]
    try:
        for (_reader, writer), wanted in zip(connections, crowd, strict=True):
            writer.write(wanted.text(port))
        async with asyncio.timeout(_ANSWER_S):
            return [_answer(await reader.read()) for reader, _writer in connections]
    finally:
        for _reader, writer in connections:
            writer.close()


def _answer(received: bytes) -> Answer:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Answer(int(first.split(" ")[1]), json.loads(body), {name.lower(): value for name, value in headers.items()})
