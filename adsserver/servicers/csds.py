"""CSDS: what the clients of the whole fleet were sent, for operators and their tools (protocol.md K2, decisions U16).

It shows configuration, so it asks for an API token in every mode of authentication, also where data planes are
anonymous, and on every request again (reliability S1, S2, threat 7). Whether there is such a token at all is looked up
in memory, before anything else; what it may read, in the database. Everything that costs time is done by one thread, in
which tokens take turns; the event loop only waits, and no token has more calls open at once than allowed (S6).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

import grpc
import structlog

from adsserver.identity.identification import Caller, Peer, UnauthenticatedError, UndecidedError, bearer_token
from adsserver.limits.admission import SHORT_OF_MEMORY, MemoryBound
from adsserver.metrics import Metrics
from adsserver.ports import FleetStatus, FleetUnavailableError, Reader
from adsserver.servicers.ends import BROKEN, DRAINING, TOO_SLOW, End, StreamEndError, no_request
from adsserver.servicers.shared import Context
from adsserver.servicers.turns import Turns
from adsserver.wire.status import BadStatusRequestError, TooMuchStatusError, answer
from xdscore.limits import Limits
from xdscore.token_bucket import TokenBucket

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

# An answer may take the thread some tenths of a second; a flood of questions must not cost the streams a core.
_ANSWERS_PER_S = 10.0
_BURST = 20.0
# So many tokens may have all the calls that one may have; beyond that, each still has its first.
_FULL_TOKENS = 16
_HOW = "Send the metadata 'authorization: Bearer TOKEN' with an API token of the role viewer."
BAD_TOKEN = End(grpc.StatusCode.UNAUTHENTICATED, f"The token is unknown, expired or revoked. {_HOW}")
NO_REQUEST = End(grpc.StatusCode.INVALID_ARGUMENT, "The call ended without a request.")
NOTHING_TO_READ = End(grpc.StatusCode.PERMISSION_DENIED, "This token may not read the clients of any environment.")

T = TypeVar("T")


class StatusServicer:
    """The methods of the client status service (CSDS). One per server, used on its event loop.

    The calls of each API token are limited by themselves: they take nothing from streams, nor from another token's
    calls. A caller without a known token is refused by a look into memory alone, so that it makes nobody wait.
    """

    def __init__(self, fleet: FleetStatus, memory: MemoryBound, limits: Limits, metrics: Metrics) -> None:
        self._fleet = fleet
        self._memory = memory
        self._limits = limits
        self._refused = metrics.status_refused
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ads-status")
        self._bucket = TokenBucket(_ANSWERS_PER_S, _BURST, 0.0)
        self._turns = Turns()
        self._calls: Counter[str] = Counter()
        self._closing = asyncio.Event()

    @property
    def open(self) -> int:
        """The number of calls that are being served."""
        return self._calls.total()

    def close(self) -> None:
        """End the open streams, because the server stops; called on the event loop."""
        self._closing.set()
        self._thread.shutdown(wait=False)

    def check(self, caller: Peer) -> None:
        """Refuse a call whose API token was not among those last read, before the call costs a thread or the database
        anything. Raises UnauthenticatedError, UndecidedError.
        """
        try:
            self._check(_token(caller))
        except StreamEndError as error:
            self._refused[error.end.code.name].inc()
            unknown = error.end.code is grpc.StatusCode.UNAUTHENTICATED
            raise (UnauthenticatedError if unknown else UndecidedError)(error.end.text) from error

    async def fetch(self, _: object, context: Context, __: Caller) -> None:
        """Serve FetchClientStatus: one request, one response."""
        await self._serve(context, self._once)

    async def stream(self, _: object, context: Context, __: Caller) -> None:
        """Serve StreamClientStatus: for each request one response, with the status at that moment."""
        await self._serve(context, self._each)

    async def _serve(self, context: Context, answer: Callable[[Context, str], Awaitable[None]]) -> None:
        try:
            token = _token(context)
            with self._place(token):
                await answer(context, token)
        except StreamEndError as error:
            self._refused[error.end.code.name].inc()
            await context.abort(error.end.code, error.end.text)

    async def _once(self, context: Context, token: str) -> None:
        data = await self._next(context, self._limits.first_request_ms / 1000)
        if data is None:
            raise StreamEndError(NO_REQUEST)
        await self._write(context, await self._answer(data, token))

    async def _each(self, context: Context, token: str) -> None:
        longest_s: float | None = self._limits.first_request_ms / 1000
        while (data := await self._next(context, longest_s)) is not None:
            await self._write(context, await self._answer(data, token))
            longest_s = None

    def _check(self, token: str) -> None:
        """Refuse a token that was not among those last read. What the token may read is asked later, in the thread."""
        try:
            known = self._fleet.knows(token)
        except FleetUnavailableError as error:
            raise StreamEndError(End(grpc.StatusCode.UNAVAILABLE, str(error))) from error
        if not known:
            raise StreamEndError(BAD_TOKEN)

    @contextmanager
    def _place(self, token: str) -> Iterator[None]:
        limit = self._limits.status_calls
        mine = self._calls[token]
        if mine >= limit:
            text = f"This token has {limit} status calls open on this server, as many as it may; "
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, text + "end one, or try again later."))
        if mine and self.open >= limit * _FULL_TOKENS:
            text = "Too many status calls are open on this server; this token may have one of them. Try again later."
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
        if self._memory.short:
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, SHORT_OF_MEMORY))
        self._calls[token] += 1
        try:
            yield
        finally:
            self._calls[token] -= 1
            if not self._calls[token]:
                del self._calls[token]

    async def _next(self, context: Context, longest_s: float | None) -> bytes | None:
        """The next request, for which it waits `longest_s` seconds at most (None: without end); None when the client
        sends no more.
        """
        read = asyncio.ensure_future(context.read())
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({read, closing}, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
            if not read.done():
                raise StreamEndError(DRAINING if closing.done() else no_request(self._limits.first_request_ms))
            data = read.result()
        finally:
            read.cancel()
            closing.cancel()
        return None if data is grpc.aio.EOF else _bytes(data)  # type: ignore[attr-defined]  # grpc-stubs do not know it

    async def _write(self, context: Context, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._limits.write_timeout_s):
                await context.write(data)
        except TimeoutError:
            raise StreamEndError(TOO_SLOW) from None

    async def _answer(self, request: bytes, token: str) -> bytes:
        self._check(token)
        return await self._in_thread(token, partial(self._work, request, token))

    async def _in_thread(self, token: str, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        await self._turns.take(token)
        try:
            await asyncio.sleep(self._bucket.take(loop.time()))
            future = self._thread.submit(work)
        except BaseException as error:
            self._turns.give()
            if isinstance(error, RuntimeError) and self._closing.is_set():
                raise StreamEndError(DRAINING) from error
            raise

        def left(_: object) -> None:
            # The caller may have gone away; its turn lasts until the thread is done with it. The loop may be closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._turns.give)

        future.add_done_callback(left)
        return await asyncio.wrap_future(future)

    # In the thread

    def _work(self, request: bytes, token: str) -> bytes:
        reader = self._reader(token)
        try:
            found = answer(request, reader, self._fleet, self._limits)
        except BadStatusRequestError as error:
            raise StreamEndError(End(grpc.StatusCode.INVALID_ARGUMENT, str(error))) from error
        except TooMuchStatusError as error:
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))) from error
        except FleetUnavailableError as error:
            raise StreamEndError(End(grpc.StatusCode.UNAVAILABLE, str(error))) from error
        except Exception as error:
            log.exception("status.failed", reader=reader.name)
            raise StreamEndError(BROKEN) from error
        log.info(
            "status.answered",
            reader=reader.name,
            clients=found.clients,
            resources=found.resources,
            bytes=len(found.data),
        )
        return found.data

    def _reader(self, token: str) -> Reader:
        """The reader that the token stands for. Raises StreamEndError unless the accounts in the database allow it;
        also when these cannot be read.
        """
        try:
            reader = self._fleet.reader(token)
        except FleetUnavailableError as error:
            raise StreamEndError(End(grpc.StatusCode.UNAVAILABLE, str(error))) from error
        except Exception as error:
            log.exception("status.failed")
            raise StreamEndError(BROKEN) from error
        if reader is None:
            raise StreamEndError(BAD_TOKEN)
        if not reader.environments:
            raise StreamEndError(NOTHING_TO_READ)
        return reader


def _token(context: Peer) -> str:
    """The one bearer token of a call. Raises StreamEndError when there is not exactly one."""
    try:
        return bearer_token(context.invocation_metadata() or ())
    except ValueError as error:
        text = f"The status of clients is for operators, and the authorization metadata {error}. {_HOW}"
        raise StreamEndError(End(grpc.StatusCode.UNAUTHENTICATED, text)) from error


def _bytes(data: object) -> bytes:
    # Methods without serialisers hand bytes over; grpc-stubs do not know of such.
    if not isinstance(data, bytes):
        raise TypeError("a request that is not bytes")
    return data
