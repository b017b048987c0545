"""Each request of somebody who came by the identity provider: their sign-in must still stand."""

from typing import Final

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse
from structlog.contextvars import get_contextvars

from controlplane.accounts.logins import local_sign_in_allowed
from controlplane.accounts.signed_in import PROVIDER_KEY
from controlplane.accounts.vouching import provider
from controlplane.http.gates import Gate
from controlplane.http.sessions import is_api, session_shown
from controlplane.oidc.sign_ins import sign_in_stands

SESSION_KEY: Final = PROVIDER_KEY
_ENDED: Final = (
    "Your sign-in ended: the identity provider does not vouch for it any more, or cannot be asked. Sign in again."
)
_LOCAL: Final = "Your sign-in ended: people sign in by the identity provider now."


class SignInStands(Gate):
    """Middleware that ends the session of somebody for whom the identity provider does not vouch any more. It asks the
    provider once in `oidc_recheck_s`; a request without a session, and every request without a provider, costs nothing.
    """

    async def refusal_soon(self, request: HttpRequest) -> HttpResponse | None:
        """The result of `refusal`, in a thread where there is a session to look at."""
        if _concerned(request):
            await sync_to_async(self.refusal, thread_sensitive=True)(request)
        return None

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Always None: where the sign-in ended, the request goes on as that of nobody, and is answered as such."""
        if _concerned(request) and (reason := _reason_to_end(request)):
            logout(request)
            if not is_api(request):
                messages.warning(request, reason)
        return None


def session_stands(session: SessionBase) -> bool:
    """Whether the sign-in of this session still stands, for requests that stay open."""
    key = session.get(SESSION_KEY)
    return provider() is None or not isinstance(key, str) or sign_in_stands(key, request_id=_request_id())


def _concerned(request: HttpRequest) -> bool:
    return provider() is not None and session_shown(request)


def _reason_to_end(request: HttpRequest) -> str:
    """Why this session ends now, as a sentence for whoever has it; empty where it does not."""
    if isinstance(request.session.get(SESSION_KEY), str):
        return "" if session_stands(request.session) else _ENDED
    user = request.user
    return _LOCAL if user.is_authenticated and not local_sign_in_allowed(user) else ""


def _request_id() -> str:
    return str(get_contextvars().get("request_id", ""))
