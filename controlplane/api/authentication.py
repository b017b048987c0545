"""Who is asking: a bearer token, or somebody signed in to the console (safe against forged requests)."""

from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from controlplane.accounts.principal import INSTALLATION, Principal
from controlplane.accounts.selectors import token_principal, user_principal
from controlplane.api.errors import Unauthenticated
from controlplane.api.rates import token_admit, user_admit
from controlplane.api.strangers import caller_known
from controlplane.common.errors import Forbidden
from controlplane.factors.proof import proof_holds
from controlplane.oidc.gates import session_stands
from controlplane.oidc.sign_ins import token_recheck

_SCHEME: Final = "bearer"
_MAX_TOKEN_CHARS: Final = 200  # ours have 50; nothing longer is worth a hash and a read
_HINT: Final = "Send 'Authorization: Bearer TOKEN', or sign in."


def principal_again(request: HttpRequest) -> Principal | None:
    """The principal that the credential of this request, which was let in before, speaks for now; None once the token
    has ended or nobody is signed in any more. For requests that stay open; counts for no rate.
    """
    header = request.headers.get("Authorization")
    if header is not None:
        token = header.partition(" ")[2].strip()
        token_recheck(token)
        return token_principal(token)
    again = HttpRequest()
    again.session = type(request.session)(request.session.session_key)  # read anew: somebody may have signed out
    if not session_stands(again.session):
        return None
    return user_principal(get_user(again))


class BearerToken(BaseAuthentication):
    """Authenticates requests by a token in the header `Authorization: Bearer parley_…`."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Principal] | None:
        """The principal that the token in the request's Authorization header speaks for; None when there is no such
        header. Raises Unauthenticated for a token that is not valid, and Busy for one that sends too many requests.
        """
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _space, token = header.partition(" ")
        token = token.strip()
        if scheme.lower() != _SCHEME or not token or "," in token:  # a comma: several headers, joined by the server
            raise Unauthenticated(f"The Authorization header is not one bearer token. {_HINT}")
        principal = None
        if len(token) <= _MAX_TOKEN_CHARS and token.isascii():
            token_recheck(token)
            principal = token_principal(token)
        if principal is None:
            raise Unauthenticated(f"The token is unknown, expired or revoked. {_HINT}")
        caller_known(request._request)  # noqa: SLF001  what outlives DRF's own request
        if principal != INSTALLATION:
            token_admit(request._request, principal)  # noqa: SLF001  as above
        return AnonymousUser(), principal


class SignedIn(SessionAuthentication):
    """Authenticates requests by the session of somebody signed in to the console. A request that writes must also carry
    the CSRF token, in the header X-CSRFToken.
    """

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """The signed-in user and their principal; None when nobody is signed in. Raises PermissionDenied for a write
        without the CSRF token, and Busy for a user who sends too many requests.
        """
        found = super().authenticate(request)
        if found is None:
            return None
        user, _none = found
        principal = user_principal(user)
        if principal is None:
            return None
        caller_known(request._request)  # noqa: SLF001  as above
        user_admit(request._request, principal)  # noqa: SLF001  as above
        return user, principal

    def enforce_csrf(self, request: Request) -> None:
        """Raise PermissionDenied for a write without the CSRF token. Uses Django's request: DRF's would read the body
        to look for the token in a form.
        """
        super().enforce_csrf(request._request)  # type: ignore[arg-type]  # noqa: SLF001  what the check was written for


def proof_require(request: Request, act: str, page: str) -> None:
    """Check that somebody who acts by a session proved lately who they are, as the console asks them to: nobody has a
    right for longer than a session, or past a review, by having that session. Whoever shows a token is not asked.
    `act`: what needs it, for people; `page`: the console's page that does the same. Raises Forbidden.
    """
    if isinstance(request.successful_authenticator, SignedIn) and not proof_holds(request.session):
        raise Forbidden(
            f"{act} needs a proof of who you are that is not older than {settings.PARLEY.limits.sudo_s // 60} minutes: "
            f"do it on the page {page}, which asks, or sign in again. Nothing was changed."
        )
