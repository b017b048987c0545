"""A request under a name that is none of ours is refused before anything else, and told in one line.

Django would do the same with a stack trace, as if the fault were ours. It is a scanner's, a scraper's or a proxy's that
was told the wrong name; the line says which name came, and what to ask instead.
"""

from collections.abc import Awaitable, Callable
from typing import cast

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from controlplane.api.handlers import bad_request
from controlplane.api.request_log import TOLD

log = structlog.get_logger(__name__)

Respond = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class HostCheck:
    """A middleware for both kinds of chain, behind the rates of strangers and before what takes a turn or a thread."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Respond) -> None:
        self._respond = get_response
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """The answer, or that this is not its name."""
        if self._asynchronous:
            return self._asynchronously(request)
        return _refusal(request) or self._respond(request)

    async def _asynchronously(self, request: HttpRequest) -> HttpResponseBase:
        return _refusal(request) or await cast(Awaitable[HttpResponseBase], self._respond(request))


def _refusal(request: HttpRequest) -> HttpResponse | None:
    try:
        request.get_host()
    except DisallowedHost as error:
        response = bad_request(request, error)
        log.warning(
            "host.refused",
            host=request.META.get("HTTP_HOST", ""),
            detail="People and pipelines use the name in PARLEY_PUBLIC_URL; probes and Prometheus ask "
            "PARLEY_WEB_METRICS_ADDRESS.",
        )
        request.META[TOLD] = True
        # As Django marks what it has logged: it adds a line to every other refusal.
        response._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001
        return response
    return None
