"""The bases of middleware that stands in a synchronous chain and in an asynchronous one, and takes no thread for it."""

from collections.abc import Awaitable, Callable
from typing import cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

Respond = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class Middleware:
    """A link of either chain. A kind says how it answers in both: `answer` and `answer_soon`; what the rest of the
    chain answers it asks of `rest` and `rest_soon`.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Respond) -> None:
        self._respond = get_response
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """The answer, or in an asynchronous chain what is awaited for it."""
        return self.answer_soon(request) if self._asynchronous else self.answer(request)

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """The answer in a synchronous chain."""
        raise NotImplementedError

    async def answer_soon(self, request: HttpRequest) -> HttpResponseBase:
        """The answer in an asynchronous chain, made on its event loop."""
        raise NotImplementedError

    def rest(self, request: HttpRequest) -> HttpResponseBase:
        """What the rest of a synchronous chain answers."""
        return cast(HttpResponseBase, self._respond(request))

    async def rest_soon(self, request: HttpRequest) -> HttpResponseBase:
        """What the rest of an asynchronous chain answers."""
        return await cast(Awaitable[HttpResponseBase], self._respond(request))


class Gate(Middleware):
    """Lets a request pass or answers it itself; `refusal` is what each kind decides."""

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """The refusal, or what the rest of a synchronous chain answers."""
        return self.refusal(request) or self.answered(request, self.rest(request))

    async def answer_soon(self, request: HttpRequest) -> HttpResponseBase:
        """The refusal, or what the rest of an asynchronous chain answers."""
        return await self.refusal_soon(request) or self.answered(request, await self.rest_soon(request))

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The answer that refuses the request; None lets it pass."""
        raise NotImplementedError

    async def refusal_soon(self, request: HttpRequest) -> HttpResponse | None:
        """The result of `refusal` on an event loop; a kind that reads does so in a thread."""
        return self.refusal(request)

    def answered(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # noqa: ARG002  for kinds
        """The answer of the rest of the chain; a kind may learn from it."""
        return response
