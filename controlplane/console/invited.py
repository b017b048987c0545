"""What whoever has the link of an invitation sees: who invites to what, and a form to accept.

The link itself only hands its token to this browser, in a cookie, and leads on to a page without it: nothing comes of
opening it, as programs do that look into mail, and no address that is sent elsewhere has the token in it.
"""

import re
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.password_validation import password_validators_help_texts
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views import View
from structlog.contextvars import get_contextvars

from controlplane.accounts.logins import link_count, local_sign_in_is_for_everybody
from controlplane.accounts.vouching import from_provider
from controlplane.common.errors import ControlPlaneError, NotFound, TooManyAttempts
from controlplane.console.people import role_words
from controlplane.console.sign_in import caller_of_request, ways_to_sign_in
from controlplane.invitations.letters import PATH
from controlplane.invitations.selectors import Invited, invitation_behind
from controlplane.invitations.services import CLOSED, VOID, invitation_accept, invitation_accept_as
from controlplane.invitations.values import State

_KEPT_S: Final = 3600
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{20,100}")


def cookie_name() -> str:
    """The name of the cookie in which a browser keeps the token of the link that it opened. Over HTTPS it has the
    prefix `__Host-`, so that browsers take it over TLS only and send it to no other host (RFC 6265bis).
    """
    return "__Host-parley-invitation" if settings.SESSION_COOKIE_SECURE else "parley-invitation"


class LinkView(View):
    """What the link of an invitation leads to."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest, token: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """Let the browser keep the token, and lead on to the page that says what it opens. Looks nothing up."""
        answer = redirect("invitation")
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["Cache-Control"] = "no-store"
        answer.set_cookie(
            cookie_name(),
            token if _TOKEN.fullmatch(token) else "",
            max_age=_KEPT_S,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",  # the way here begins in a mail
        )
        return answer


class InvitedPage(View):
    """The page of an invitation, for whoever opened its link in this browser."""

    http_method_names = ["get", "head", "post"]
    token: str
    invited: Invited

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Count the request before anything is looked up; one text answers for every token that opens nothing."""
        self.token = request.COOKIES.get(cookie_name(), "")
        answer: HttpResponseBase
        try:
            link_count(caller_of_request(request))
            self.invited = self._open()
            answer = super().dispatch(request, *args, **kwargs)
        except TooManyAttempts as error:
            answer = _page(request, None, told=f"Too many attempts. Wait {error.wait}, then try again.", status=429)
            answer.headers["Retry-After"] = str(error.retry_after_s)
        except NotFound as error:
            answer = _page(request, None, told=error.detail, status=error.status)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    def _open(self) -> Invited:
        """The invitation that the token opens. Raises NotFound."""
        found = invitation_behind(self.token) if _TOKEN.fullmatch(self.token) else None
        if found is None:
            raise NotFound(CLOSED)
        return found

    def get(self, request: HttpRequest) -> HttpResponse:
        """Who invites to what, and how to accept."""
        return _page(request, self.invited)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Accept the invitation as the form says, and lead on; or say on the page why that cannot be. Raises
        NotFound.
        """
        request_id = str(get_contextvars().get("request_id", ""))
        user, given = request.user, request.POST
        try:
            if user.is_authenticated:
                invitation_accept_as(token=self.token, user=user, request_id=request_id)
                told, leads_to = "The invitation is accepted: its roles are yours from now on.", "account"
            else:
                name = invitation_accept(
                    token=self.token,
                    username=given.get("username", "").strip(),
                    password=given.get("new", ""),
                    again=given.get("again", ""),
                    request_id=request_id,
                )
                told, leads_to = f"Your account is there: sign in as {name}, with your new password.", "login"
        except NotFound:
            raise
        except ControlPlaneError as error:
            return _page(request, self.invited, error=error, status=error.status)
        messages.success(request, told)
        answer = redirect(leads_to)
        answer.delete_cookie(cookie_name(), samesite="Lax")
        return answer


def _page(
    request: HttpRequest,
    invited: Invited | None,
    *,
    told: str = "",
    error: ControlPlaneError | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page of an invitation; where that is None, only the sentence `told`."""
    user = request.user
    if invited is not None and invited.state is State.VOID:
        told, status = VOID.format(inviter=invited.inviter), 403
    means = dict(role_words())
    context = {
        "invited": invited if not told else None,
        "roles": [(each, means[each.role.value]) for each in invited.roles] if invited is not None else [],
        "told": told,
        "error": error if not told else None,
        "given": request.POST,
        "rules": password_validators_help_texts(),
        "by_password": local_sign_in_is_for_everybody(),
        "signed_in": user.get_username() if user.is_authenticated else "",
        "by_provider": user.is_authenticated and from_provider(user.pk),
        **ways_to_sign_in(),
    }
    return render(request, "people/invited.html", context, status=status)


urlpatterns = [
    path(f"{PATH}<str:token>", LinkView.as_view(), name="invitation-link"),
    path(PATH.removesuffix("/"), InvitedPage.as_view(), name="invitation"),
]
