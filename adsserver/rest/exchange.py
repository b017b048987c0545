"""One HTTP/1.1 connection: requests in, answers out, everything bounded in size and time. Decides nothing.

The grammar of HTTP is read and written by h11; here is when bytes are read and for how long somebody may take.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import h11

from adsserver.rest.problems import PROBLEM_TYPE, Headers, Problem
from xdscore.limits import Limits

_READ_BYTES: Final = 64 * 1024
# What a slow reader must take of within the time of `write_timeout_s`.
_WRITE_BYTES: Final = 256 * 1024
_COMMON: Final[Headers] = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))


class GoneError(Exception):
    """Raised when the peer is gone, or does not read: there is nobody to answer."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a request: what is asked of which path, and the headers, with their names in lower case."""

    method: str
    path: str
    headers: Sequence[tuple[bytes, bytes]]

    def values(self, name: bytes) -> list[str]:
        """The values of a header, in order."""
        return [value.decode("latin-1") for key, value in self.headers if key == name]


class Exchanges:
    """The requests and answers of one connection, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: Limits) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.metadata_bytes)

    async def head(self, idle_s: float) -> Head | None:
        """The head of the next request; None when the peer closed the connection, or was silent for `idle_s` seconds.
        Raises Problem for what is no request.
        """
        if not self._http.trailing_data[0]:
            try:
                async with asyncio.timeout(idle_s):
                    data = await self._read()
            except TimeoutError:
                return None
            if not data:
                return None
            self._http.receive_data(data)
        event = await self._event()
        if not isinstance(event, h11.Request):
            return None
        if event.http_version not in {b"1.1", b"1.0"}:
            text = "Polls are taken over HTTP/1.1."
            raise Problem(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, text, ends=True)
        # h11 bounds a head that comes in parts, and not one that comes at once.
        size = len(event.target) + sum(len(name) + len(value) for name, value in event.headers)
        if size > self._limits.metadata_bytes:
            raise self._large_head()
        path = event.target.partition(b"?")[0].decode("latin-1")
        return Head(event.method.decode("ascii"), path, list(event.headers))

    async def body(self) -> bytes:
        """The body of the request whose head was read. Raises Problem when it is too large, or comes too slowly."""
        limit = self._limits.rest_request_bytes
        parts: list[bytes] = []
        size = 0
        while True:
            event = await self._event()
            if isinstance(event, h11.EndOfMessage):
                return b"".join(parts)
            if not isinstance(event, h11.Data):
                raise GoneError
            size += len(event.data)
            if size > limit:
                text = f"The body has more than {limit} bytes, as many as are allowed (rest_request_bytes)."
                raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text, ends=True)
            parts.append(bytes(event.data))

    async def left(self) -> None:
        """Wait until the peer leaves, or sends something before it has its answer, which is kept for later. To be
        cancelled when there is an answer.
        """
        data = await self._read()
        self._http.receive_data(data)
        if data:
            await asyncio.Event().wait()

    async def answer(self, status: HTTPStatus, body: bytes, headers: Headers = (), *, ends: bool = False) -> bool:
        """Write an answer; whether another request may follow. Raises GoneError when the peer does not take it."""
        fields = [*_COMMON, *headers]
        if status is not HTTPStatus.NOT_MODIFIED:
            fields.append(("Content-Length", str(len(body))))
        if ends:
            fields.append(("Connection", "close"))
        head = h11.Response(
            status_code=status.value,
            reason=status.phrase.encode(),
            headers=[(name.encode(), value.encode()) for name, value in fields],
        )
        try:
            out = self._http.send(head) or b""
            if status is not HTTPStatus.NOT_MODIFIED:
                out += self._http.send(h11.Data(data=body)) or b""
            out += self._http.send(h11.EndOfMessage()) or b""
        except h11.LocalProtocolError as error:
            # What came was no request that HTTP could answer.
            raise GoneError from error
        await self._write(out)
        if self._http.our_state is h11.MUST_CLOSE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def turn_down(self, problem: Problem) -> bool:
        """Answer with a problem document; whether another request may follow."""
        headers = (("Content-Type", PROBLEM_TYPE), *problem.headers)
        ends = problem.ends or self._http.their_state is not h11.DONE
        return await self.answer(problem.status, problem.body, headers, ends=ends)

    async def _event(self) -> object:
        """The next event of h11, for which the peer has the time of a first request."""
        limit_ms = self._limits.first_request_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while (event := self._http.next_event()) is h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:
                        proceed = h11.InformationalResponse(status_code=100, headers=[])
                        self._writer.write(self._http.send(proceed) or b"")
                    self._http.receive_data(await self._read())
                return event
        except TimeoutError:
            text = f"The request did not come within {limit_ms} ms (first_request_ms)."
            raise Problem(HTTPStatus.REQUEST_TIMEOUT, text, ends=True) from None
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            if status is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
                raise self._large_head() from error
            raise Problem(status, f"This is no HTTP/1.1 request: {error}.", ends=True) from error

    def _large_head(self) -> Problem:
        text = f"The head of the request has more than {self._limits.metadata_bytes} bytes (metadata_bytes)."
        return Problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text, ends=True)

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(_READ_BYTES)
        except (OSError, EOFError) as error:
            raise GoneError from error

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            for start in range(0, len(data), _WRITE_BYTES):
                self._writer.write(view[start : start + _WRITE_BYTES])
                async with asyncio.timeout(self._limits.write_timeout_s):
                    await self._writer.drain()
        except (OSError, TimeoutError) as error:
            raise GoneError from error
