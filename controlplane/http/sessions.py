"""Which requests act by a session of somebody, as far as the request itself tells."""

from typing import Final

from django.conf import settings
from django.http import HttpRequest

_API: Final = "/api/"
_PROBES: Final = ("/healthz", "/readyz")


def session_shown(request: HttpRequest) -> bool:
    """Whether the request shows a session and may act by it. Static files and probes look at none, and REST at none
    where there is a token.
    """
    shown = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    quiet = request.path in _PROBES or request.path.startswith(settings.STATIC_URL)
    by_token = is_api(request) and "Authorization" in request.headers
    return bool(shown) and not quiet and not by_token


def is_api(request: HttpRequest) -> bool:
    """Whether the request is for the REST API, where nobody reads a message on the next page."""
    return request.path.startswith(_API)
