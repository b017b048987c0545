"""CSDS: what the clients of the whole fleet were sent, for operators and their tools (protocol.md K2, resolutions U16).

It shows configuration, so it asks for an API token in every mode of authentication, also where data planes are
anonymous, and on every request again (reliability S1, S2, threat 7). Everything that costs time is done by one thread;
the event loop only waits, and no more calls wait at once than allowed (S6).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import grpc
import structlog

from adsserver.budgets import REQUEST_S, Budget, RefusedStreamError, caller_key
from adsserver.identity import Caller, bearer_token
from adsserver.limits import Admission
from adsserver.ports import FleetStatus, FleetUnavailableError, Reader
from adsserver.servicers.ends import BROKEN, DRAINING, TOO_SLOW, End, StreamEndError, no_request
from adsserver.servicers.shared import Context
from adsserver.status_wire import BadStatusRequestError, TooMuchStatusError, answer
from xdscore.limits import Limits
from xdscore.token_bucket import TokenBucket

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

# An answer may take the thread some tenths of a second; a flood of questions must not cost the streams a core.
_ANSWERS_PER_S = 10.0
_BURST = 20.0
_HOW = "Send the metadata 'authorization: Bearer TOKEN' with an API token of the role viewer."
BAD_TOKEN = End(grpc.StatusCode.UNAUTHENTICATED, f"The token is unknown, expired or revoked. {_HOW}")
NOTHING_TO_READ = End(grpc.StatusCode.PERMISSION_DENIED, "This token may not read the clients of any environment.")

T = TypeVar("T")


class StatusServicer:
    """Both methods of the service. Made once per server, used on its event loop."""

    def __init__(self, fleet: FleetStatus, admission: Admission, limits: Limits) -> None:
        self._fleet = fleet
        self._admission = admission
        self._limits = limits
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ads-status")
        self._bucket = TokenBucket(_ANSWERS_PER_S, _BURST, 0.0)
        self._waiting = 0
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End the open streams, because the server stops; on the event loop."""
        self._closing.set()
        self._thread.shutdown(wait=False)

    async def fetch(self, _: object, context: Context, caller: Caller) -> None:
        """FetchClientStatus: one request, one response."""
        await self._serve(context, caller, once=True)

    async def stream(self, _: object, context: Context, caller: Caller) -> None:
        """StreamClientStatus: one response for each request, as of that moment."""
        await self._serve(context, caller, once=False)

    async def _serve(self, context: Context, caller: Caller, *, once: bool) -> None:
        try:
            async with self._admitted(context, caller) as budget:
                token = _token(context)
                # Nobody unknown is even listened to.
                await self._in_thread(partial(self._reader, token))
                longest_s: float | None = self._limits.first_request_ms / 1000
                while (data := await self._next(context, longest_s)) is not None:
                    await self._write(context, await self._answer(data, token, budget))
                    if once:
                        return
                    longest_s = None
        except StreamEndError as error:
            await context.abort(error.end.code, error.end.text)

    @asynccontextmanager
    async def _admitted(self, context: Context, caller: Caller) -> AsyncIterator[Budget]:
        try:
            budget = await self._admission.enter(caller_key(caller.identity, context.peer()))
        except RefusedStreamError as error:
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))) from error
        try:
            yield budget
        finally:
            self._admission.leave(budget)

    async def _next(self, context: Context, longest_s: float | None) -> bytes | None:
        """The next request, waited for so long; None when the client has no more."""
        read = asyncio.ensure_future(context.read())
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({read, closing}, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
            if not read.done():
                over = DRAINING if closing.done() else no_request(self._limits.first_request_ms)
                raise StreamEndError(over)
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

    async def _answer(self, request: bytes, token: str, budget: Budget) -> bytes:
        budget.received(len(request))
        budget.spend(REQUEST_S)
        await budget.turn()
        return await self._in_thread(partial(self._work, request, token))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._waiting >= self._limits.status_calls:
            text = f"{self._limits.status_calls} status requests wait for their answer already; try again later."
            raise StreamEndError(End(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
        loop = asyncio.get_running_loop()
        self._waiting += 1
        try:
            await asyncio.sleep(self._bucket.take(loop.time()))
            future = self._thread.submit(work)
        except BaseException as error:
            self._waiting -= 1
            if isinstance(error, RuntimeError) and self._closing.is_set():
                raise StreamEndError(DRAINING) from error
            raise

        def left(_: object) -> None:
            # The caller may have gone away; its work counts until the thread is done with it. The loop may be closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._leave)

        future.add_done_callback(left)
        return await asyncio.wrap_future(future)

    def _leave(self) -> None:
        self._waiting -= 1

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
        """Whoever asks. Denied unless the accounts say otherwise; whatever fails on the way denies, too."""
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


def _token(context: Context) -> str:
    """The one bearer token of a call. Raises StreamEndError."""
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
