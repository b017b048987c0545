"""Notes in which browsers somebody is signed in, so that they can see and end it."""

import structlog
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from controlplane.accounts.signed_in import browser_is_noted, browser_seen
from controlplane.http.gates import Middleware

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class BrowserSeen(Middleware):
    """Middleware that notes, once in a while, that the browser of somebody who is signed in asked for something. A
    request whose session nobody looked at costs nothing.
    """

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """The answer of the rest of a synchronous chain, after the browser was noted."""
        answer = self.rest(request)
        if _is_due(request):
            _note(request)
        return answer

    async def answer_soon(self, request: HttpRequest) -> HttpResponseBase:
        """The answer of the rest of an asynchronous chain; the browser is noted in a thread."""
        answer = await self.rest_soon(request)
        if _is_due(request):
            await sync_to_async(_note, thread_sensitive=True)(request)
        return answer


def _is_due(request: HttpRequest) -> bool:
    key = request.session.session_key if request.session.accessed else None
    return key is not None and not browser_is_noted(key)


def _note(request: HttpRequest) -> None:
    if not request.user.is_authenticated:
        return
    try:
        browser_seen(
            user_id=request.user.pk,
            session_key=request.session.session_key or "",
            # What a proxy reports counts only when it is one we were told of: asgi.py has put it here then.
            address=str(request.META.get("REMOTE_ADDR", "")),
            user_agent=request.headers.get("User-Agent", ""),
        )
    except OperationalError as error:  # a line in a list is worth nobody's page
        log.warning("browser.not_noted", reason=str(error).strip())
