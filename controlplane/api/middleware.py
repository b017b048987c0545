"""What every request and answer passes, outermost: an id, the version of the API, the path as it was sent, and the line
in the log.

Works in a synchronous chain and in an asynchronous one, so that a request that waits holds no thread because of it.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Final, cast

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from controlplane.api.paths import PREFIX, encoded_path
from controlplane.api.problems import answer_for
from controlplane.api.request_log import request_told
from controlplane.api.requests import HEADER, chosen_id, request_id_set
from controlplane.security_headers import page_contain, security_headers_set
from xdscore import build

VERSION_HEADER: Final = "API-Version"
VERSION: Final = "1"

Respond = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class RequestMiddleware:
    """Gives each request its id for logs, audit and answer, and prepares requests to the API's paths."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Respond) -> None:
        self._respond = get_response
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._asynchronous:
            return self._call_async(request)
        identity, began = _begin(request), time.monotonic()
        with structlog.contextvars.bound_contextvars(request_id=identity):
            return _end(request, cast(HttpResponseBase, self._respond(request)), identity, began)

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        identity, began = _begin(request), time.monotonic()
        with structlog.contextvars.bound_contextvars(request_id=identity):
            return _end(request, await cast(Awaitable[HttpResponseBase], self._respond(request)), identity, began)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The problem document for an exception that a view of the API lets through; other rooms answer for
        themselves.
        """
        return answer_for(exception, path=request.path) if _is_api(request) else None


def _begin(request: HttpRequest) -> str:
    identity = chosen_id(request.headers.get(HEADER, ""))
    request_id_set(identity)
    if _is_api(request):
        request.path_info = encoded_path(request)
    return identity


def _end(request: HttpRequest, response: HttpResponseBase, identity: str, began: float) -> HttpResponseBase:
    response[HEADER] = identity
    security_headers_set(response)
    page_contain(response)
    if _is_api(request):
        response[VERSION_HEADER] = VERSION
        # For those whom the API lets in: an answer to a stranger is a refusal, or leads to signing in.
        if response.status_code < 300:
            response[build.HEADER] = build.BUILD_VERSION
        # Answers depend on who asks and on what was written a moment ago; a snapshot's view says otherwise for itself.
        response.headers.setdefault("Cache-Control", "private, no-cache")
    request_told(request, response.status_code, time.monotonic() - began)
    return response


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(PREFIX)
