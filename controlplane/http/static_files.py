"""Static files without a second server, in an asynchronous chain of middleware.

WhiteNoise's own middleware is synchronous: Django would then give each request a thread and an event loop of its own
for as long as it takes, and requests that wait (`?wait=`, live pages) could share nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # untyped library
    """Serves static files by WhiteNoise in both kinds of chain. Which file a path means is one look into a dictionary,
    so nothing blocks.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        super().__init__(get_response)
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        """The static file, or the answer of the rest of the chain."""
        answer: Answer = super().__call__(request)
        return _ready(answer) if self._asynchronous and isinstance(answer, HttpResponseBase) else answer


async def _ready(answer: HttpResponseBase) -> HttpResponseBase:
    if isinstance(answer, StreamingHttpResponse) and not answer.is_async:
        answer.streaming_content = _parts(iter(answer))
    return answer


async def _parts(file: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The parts of a file, read in a thread. Django would do the same, and warn each time that it had to."""

    def read() -> list[bytes]:
        return list(file)

    for part in await sync_to_async(read)():
        yield part
