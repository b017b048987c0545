"""Threads that stay, for requests that come and go.

Django gives each request a thread of its own, so that requests run beside each other. That thread ends with the
request, and with it the connection to the database that it opened: a file that is opened, whose schema is read and
whose statements are compiled anew for each request. Here a thread is given to the next request instead, one request at
a time, as before.
"""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from asgiref.sync import ThreadSensitiveContext

# Idle threads that are kept. More requests than that have threads of their own, which end with them.
KEPT: Final = 16

Application = Callable[[Any, Any, Any], Awaitable[None]]


class KeptThreads:
    """An ASGI application that lets each request of another one have a thread which outlives it."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._idle: list[ThreadPoolExecutor] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(1, thread_name_prefix="request")
        ended = False
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self._application(scope, receive, send)
            ended = True
        finally:
            # A request that was broken off may still run in its thread; that is nobody's after it.
            if ended and len(self._idle) < KEPT:
                self._idle.append(thread)
            else:
                thread.shutdown(wait=False)
