"""A request under a name that is none of ours is refused before anything else, and told in one line.

Django would do the same with a stack trace, as if the fault were ours. It is a scanner's, a scraper's or a proxy's that
was told the wrong name; the line says which name came, and what to ask instead.
"""

import structlog
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse

from controlplane.api.handlers import bad_request
from controlplane.api.request_log import TOLD
from controlplane.http.gates import Gate

log = structlog.get_logger(__name__)


class HostCheck(Gate):
    """Middleware that refuses requests whose Host header does not name this installation. Comes after the rates of
    unknown callers, and before everything that waits or takes a thread.
    """

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The answer 400 to a request whose Host header does not name this installation; None lets the request pass."""
        return _refusal(request)


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
