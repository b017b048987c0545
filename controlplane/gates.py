"""A middleware that lets a request pass or answers it itself, in a synchronous chain and in an asynchronous one."""

from collections.abc import Awaitable, Callable
from typing import cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

Respond = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class Gate:
    """The base of middleware that refuses requests; subclasses decide which by `refusal`. It takes no thread of its
    own.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Respond) -> None:
        self._respond = get_response
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """The answer to the request: the refusal, or the answer of the rest of the chain."""
        if self._asynchronous:
            return self._asynchronously(request)
        return self.refusal(request) or self.answered(request, cast(HttpResponseBase, self._respond(request)))

    async def _asynchronously(self, request: HttpRequest) -> HttpResponseBase:
        refusal = await self.refusal_soon(request)
        return refusal or self.answered(request, await cast(Awaitable[HttpResponseBase], self._respond(request)))

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The answer that refuses the request; None lets it pass."""
        raise NotImplementedError

    async def refusal_soon(self, request: HttpRequest) -> HttpResponse | None:
        """The result of `refusal` on an event loop; a subclass that reads does so in a thread."""
        return self.refusal(request)

    def answered(self, _request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """The answer of the rest of the chain; a subclass may learn from it."""
        return response
