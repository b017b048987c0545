"""Refuses a body that is too large before it is stored anywhere: outside of Django, which writes a whole body down
before it looks at it.

A body that says its size is refused by its header; one that does not (chunked) once it passes the limit. Nothing of it
is kept here meanwhile: anybody may send one, and as many as they like at once. The rest of what is refused is read and
thrown away for a moment, because a client that is still sending would otherwise see a broken connection instead of the
answer.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from controlplane.api.paths import PREFIX
from controlplane.api.problems import problem
from controlplane.api.request_log import refusal_told
from controlplane.api.requests import HEADER, chosen_id, request_id_set
from controlplane.common.errors import InputTooLarge
from xdscore.limits import Limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

_DRAIN_S: Final = 5.0  # a client on this network has stopped by then; a hostile one is cut off
_SIZE_DIGITS_MAX: Final = 19


class BodyLimit:
    """An ASGI application around another one: it refuses a request body that is too long before the other one reads
    it.
    """

    def __init__(self, application: Application, limits: Limits) -> None:
        self._application = application
        self._limits = limits

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass the request on to the application behind, or answer 413 where its body is too long."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        limit = body_limit(scope["path"], self._limits)
        headers = {name.lower(): value for name, value in scope["headers"]}
        size = headers.get(b"content-length", b"")
        if size and (not size.isdigit() or len(size) > _SIZE_DIGITS_MAX or int(size) > limit):
            await _refuse(scope, headers, limit, receive, send)
            return
        if size or b"transfer-encoding" not in headers:
            await self._application(scope, receive, send)
            return
        counted = _Counted(receive, limit)
        await self._application(scope, counted, send)
        if counted.passed:
            await _refuse(scope, headers, limit, receive, send)


def body_limit(path: str, limits: Limits) -> int:
    """The most bytes that the body of a request to this path may have. An apply may have more than others: it can
    describe a whole environment.
    """
    bulk = path.startswith(PREFIX) and (
        path.endswith(("/apply", "/requests/cases/import")) or path == f"{PREFIX}validate"
    )
    return limits.apply_bytes if bulk else limits.body_bytes


class _Counted:
    """Passes the parts of a request body on to the application. Once they exceed the limit, it tells the application
    that the client has disconnected, at which Django drops what it has read and answers nothing.
    """

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._left = limit
        self.passed = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self.passed = self._left < 0
        return {"type": "http.disconnect"} if self.passed else message


async def _refuse(
    scope: Message, headers: MutableMapping[bytes, bytes], limit: int, receive: Receive, send: Send
) -> None:
    identity = chosen_id(headers.get(HEADER.lower().encode(), b"").decode("ascii", "replace"))
    request_id_set(identity)
    answer = problem(InputTooLarge(f"The body is larger than the {limit:,} bytes allowed at {scope['path'][:200]}."))
    answer[HEADER] = identity
    answer["Content-Length"] = str(len(answer.content))
    refusal_told(scope["method"], answer.status_code, identity)
    sent = [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in answer.items()]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": sent})
    await send({"type": "http.response.body", "body": answer.content, "more_body": True})
    await _drain(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain(receive: Receive) -> None:
    deadline = time.monotonic() + _DRAIN_S
    more = True
    while more and (left := deadline - time.monotonic()) > 0:
        try:
            message = await asyncio.wait_for(receive(), left)
        except TimeoutError:
            return
        more = message["type"] == "http.request" and message.get("more_body", False)
