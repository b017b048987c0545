"""One line in the log for each request that was answered: what was asked by which route, by whom, and how it ended.

Never a path, a query string, a header or a body: they hold what people type. Who asked is an id, never a token.
Imported before there are models: `body_limit` is outside of Django.
"""

from http import HTTPStatus
from typing import Final

import structlog
from django.http import HttpRequest

from controlplane.accounts.principal import Principal
from controlplane.common.principal_ids import PrincipalId, PrincipalKind

log = structlog.get_logger(__name__)

TOLD: Final = "parley.told"
"""The key in a request's `META` that says: its refusal has a log line of its own, so that it gets no second one."""

_EVENT: Final = "request.answered"
# Asked every few seconds, or by the dozen for each page: of these only what goes wrong is told.
_QUIET: Final = frozenset({"healthz", "readyz"})
_STATIC: Final = "/static/"


def request_told(request: HttpRequest, status: int, seconds: float) -> None:
    """Log that this request was answered. `seconds`: how long that took; of an answer that is streamed, until it
    began.
    """
    if request.META.get(TOLD):
        return
    match = request.resolver_match
    route = match.route if match is not None else None
    quiet = route in _QUIET or (route is None and request.path.startswith(_STATIC))
    fields = {"environment": match.kwargs.get("environment_key") if match is not None else None}
    fields |= {"principal": _principal(request)}
    _tell(request.method, route, status, seconds, quiet=quiet, **fields)


def refusal_told(method: str, status: int, request_id: str) -> None:
    """Log that a request was refused before its body was read."""
    _tell(method, None, status, 0.0, request_id=request_id)


def _tell(  # the fields of the line, in the order in which they are read
    method: str | None, route: str | None, status: int, seconds: float, *, quiet: bool = False, **fields: str | None
) -> None:
    said = {key: value for key, value in fields.items() if value is not None}
    tell = log.info
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        tell = log.error
    elif quiet and status < HTTPStatus.BAD_REQUEST:
        tell = log.debug
    tell(_EVENT, method=method, route=route, status=status, duration_ms=round(seconds * 1000, 1), **said)


def _principal(request: HttpRequest) -> str | None:
    """The name of the principal that sent the request; None where it is not known by now. Runs no query to find out."""
    principal = getattr(request, "auth", None)  # of REST: DRF leaves it here
    if isinstance(principal, Principal):
        return str(principal.id)
    user = getattr(request, "_cached_user", None)  # of pages: what `request.user` has read
    if user is not None and user.is_authenticated:
        return str(PrincipalId(PrincipalKind.USER, user.pk))
    return None
