"""Each request of somebody who signed in by a password while a second factor is required: they must have proved one."""

from typing import Final

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse

from controlplane.factors.selectors import required
from controlplane.factors.sign_ins import factor_noted
from controlplane.http.gates import Gate
from controlplane.http.sessions import is_api, session_shown
from controlplane.oidc.gates import SESSION_KEY

_NEEDED: Final = "A second factor is required now. Sign in again: you are led to it."


class SecondFactorProved(Gate):
    """Middleware that ends sessions that began by a password alone, where a second factor is required by now. Without
    that, and without a session, a request costs nothing.
    """

    async def refusal_soon(self, request: HttpRequest) -> HttpResponse | None:
        """The result of `refusal`, in a thread where there is a session to look at."""
        if _concerned(request):
            await sync_to_async(self.refusal, thread_sensitive=True)(request)
        return None

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Always None: where the session ended, the request goes on as that of nobody, and is answered as such."""
        if not _concerned(request) or not request.user.is_authenticated:
            return None
        by_provider = isinstance(request.session.get(SESSION_KEY), str)
        if not by_provider and not factor_noted(request.session):
            logout(request)
            if not is_api(request):
                messages.warning(request, _NEEDED)
        return None


def _concerned(request: HttpRequest) -> bool:
    return required() and session_shown(request)
