"""Django's own middleware, which takes no thread where it does not block.

In an asynchronous chain Django gives each of its hooks a thread for a moment, a dozen for each request, because a hook
might read the database. Of these only two ever do, and only when there is something to store: a session that changed,
or messages. That still goes to a thread, and so does the body of a form in which the CSRF token is looked for; all else
runs on the event loop. A request to the REST API then takes a thread for its view, and none for what is around it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from asgiref.sync import sync_to_async
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin

_READS: Final = ("GET", "HEAD", "OPTIONS", "TRACE")


class _OnTheLoop(MiddlewareMixin):
    """The base of these: calls the hooks of the middleware that it is mixed into on the event loop."""

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        hooks: Any = self
        answer = hooks.process_request(request) if hasattr(self, "process_request") else None
        answer = answer or await cast(Awaitable[HttpResponseBase], self.get_response(request))
        if hasattr(self, "process_response"):
            if self.has_to_store(request):
                answer = await sync_to_async(hooks.process_response, thread_sensitive=True)(request, answer)
            else:
                answer = hooks.process_response(request, answer)
        return cast(HttpResponseBase, answer)

    def has_to_store(self, request: HttpRequest) -> bool:  # noqa: ARG002 - for those that store
        """Whether the hook for the answer has something to store, so that it must not run on the event loop."""
        return False


class Security(_OnTheLoop, SecurityMiddleware):
    """Headers that every answer has."""


class Common(_OnTheLoop, CommonMiddleware):
    """What Django does to every request and answer."""


class Authentication(_OnTheLoop, AuthenticationMiddleware):
    """Who is signed in, read once somebody asks."""


class FrameOptions(_OnTheLoop, XFrameOptionsMiddleware):
    """The header by which no other site shows a page of ours within its own."""


class Session(_OnTheLoop, SessionMiddleware):
    """The session of a request, read once somebody asks, and stored where it changed."""

    def has_to_store(self, request: HttpRequest) -> bool:
        """Whether the session changed."""
        return bool(request.session.modified)


class Messages(_OnTheLoop, MessageMiddleware):
    """What the next page of somebody is to tell, kept in a cookie or, where that is too small, in the session."""

    def has_to_store(self, request: HttpRequest) -> bool:
        """Whether messages were added or shown."""
        kept = getattr(request, "_messages", None)
        return kept is not None and (kept.used or kept.added_new)


class Csrf(_OnTheLoop, CsrfViewMiddleware):
    """Refuses what another site lets a browser send."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if self.async_mode:
            self.process_view = self._process_view_soon  # type: ignore[method-assign,assignment]  # Django awaits it

    async def _process_view_soon(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        check = super().process_view
        if request.method in _READS or getattr(view, "csrf_exempt", False):
            return cast(HttpResponse | None, check(request, view, args, kwargs))
        return cast(HttpResponse | None, await sync_to_async(check, thread_sensitive=True)(request, view, args, kwargs))
