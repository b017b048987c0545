"""What every request and answer passes, outermost: an id, the version of the API, the path as it was sent, and the line
in the log.

Works in a synchronous chain and in an asynchronous one, so that a request that waits holds no thread because of it.
"""

import time
from typing import Final

import structlog
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from controlplane.api.paths import PREFIX, encoded_path
from controlplane.api.problems import answer_for
from controlplane.api.request_log import request_told
from controlplane.api.requests import HEADER, chosen_id, request_id_set
from controlplane.http.gates import Middleware
from controlplane.http.security_headers import page_contain, security_headers_set
from xdscore import build

VERSION_HEADER: Final = "API-Version"
VERSION: Final = "1"


class RequestMiddleware(Middleware):
    """Middleware that gives each request the id that stands in its logs, audit entries and answer, and prepares
    requests under the API's paths.
    """

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """What the rest of a synchronous chain of middleware answers, with the request's id."""
        identity, began = _begin(request), time.monotonic()
        with structlog.contextvars.bound_contextvars(request_id=identity):
            return _end(request, self.rest(request), identity, began)

    async def answer_soon(self, request: HttpRequest) -> HttpResponseBase:
        """What the rest of an asynchronous chain of middleware answers, with the request's id."""
        identity, began = _begin(request), time.monotonic()
        with structlog.contextvars.bound_contextvars(request_id=identity):
            return _end(request, await self.rest_soon(request), identity, began)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The problem document for an exception raised under the API's paths; None elsewhere, where pages answer for
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
