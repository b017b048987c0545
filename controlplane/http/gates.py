"""The bases of middleware that stands in a synchronous chain and in an asynchronous one, and takes no thread for it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

Respond = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class Middleware(ABC):
    """A middleware for both a synchronous and an asynchronous chain. A subclass defines `answer` and `answer_soon`,
    which call `rest` and `rest_soon` for the answer of the rest of the chain.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Respond) -> None:
        self._respond = get_response
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """The answer to the request; in an asynchronous chain, an awaitable of it."""
        return self.answer_soon(request) if self._asynchronous else self.answer(request)

    @abstractmethod
    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """The answer to the request, in a synchronous chain."""

    @abstractmethod
    async def answer_soon(self, request: HttpRequest) -> HttpResponseBase:
        """The answer to the request, in an asynchronous chain; runs on its event loop, so it must not block."""

    def rest(self, request: HttpRequest) -> HttpResponseBase:
        """The answer of the rest of a synchronous chain."""
        return cast(HttpResponseBase, self._respond(request))

    async def rest_soon(self, request: HttpRequest) -> HttpResponseBase:
        """The answer of the rest of an asynchronous chain."""
        return await cast(Awaitable[HttpResponseBase], self._respond(request))


class Gate(Middleware):
    """A middleware that either answers a request itself or lets it pass. A subclass decides which in `refusal`."""

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """The answer of `refusal` or, where the request may pass, of the rest of a synchronous chain."""
        return self.refusal(request) or self.answered(request, self.rest(request))

    async def answer_soon(self, request: HttpRequest) -> HttpResponseBase:
        """The answer of `refusal_soon` or, where the request may pass, of the rest of an asynchronous chain."""
        return await self.refusal_soon(request) or self.answered(request, await self.rest_soon(request))

    @abstractmethod
    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The answer that refuses the request; None where the request may pass."""

    async def refusal_soon(self, request: HttpRequest) -> HttpResponse | None:
        """The result of `refusal`, in an asynchronous chain. A subclass whose `refusal` reads the database runs it in a
        thread.
        """
        return self.refusal(request)

    def answered(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # noqa: ARG002  for kinds
        """The answer of the rest of the chain, unchanged. A subclass may override this to look at the answers."""
        return response
