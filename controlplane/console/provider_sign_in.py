"""Signing in by the identity provider: to it, and back with a code. `oidc` asks the provider; here is what browsers
see.
"""

from functools import partial
from typing import Final

import structlog
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.views import RedirectURLMixin
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.crypto import constant_time_compare
from django.views import View

from controlplane.accounts.logins import Caller, login_record, provider_count
from controlplane.accounts.models import Identity
from controlplane.accounts.vouching import provider
from controlplane.common.errors import ControlPlaneError, InputInvalid, TooManyAttempts
from controlplane.config.oidc import Oidc
from controlplane.console.sign_in import BACKEND, browser_keep, caller_of_request, sign_in_page
from controlplane.factors.proof import proof_note
from controlplane.factors.sign_ins import half_end
from controlplane.oidc.attempts import (
    LASTS_S,
    Attempt,
    attempt_begin,
    attempt_open,
    attempt_seal,
    attempt_spend,
)
from controlplane.oidc.claims import CLOCK_SKEW_S, proved_at
from controlplane.oidc.gates import SESSION_KEY
from controlplane.oidc.provider import CALLBACK_PATH, ProviderAway, ProviderRefuses, Told, provider_of
from controlplane.oidc.sign_ins import sign_in_begin

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_MAX_CHARS: Final = 4_096  # of a code or a state
_AWAY: Final = (
    "{name} cannot be asked now. Try again in a minute. Parley's own administrator signs in with user and password, "
    "and finds the reason in the log of web."
)
_NOT_BEGUN: Final = (
    "This sign-in was not begun in this browser, is older than ten minutes, or was used before. Begin again below."
)
_REFUSED: Final = "{name} did not confirm this sign-in. Begin again below; if that does not help, ask an administrator."
_DENIED: Final = "{name} says that the sign-in was cancelled or is not allowed for you. Nothing was changed."


def cookie_name() -> str:
    """The name of the cookie in which a browser keeps a sign-in on its way. Over HTTPS it has the prefix `__Host-`, so
    that browsers take it over TLS only and send it to no other host (RFC 6265bis).
    """
    return "__Host-parley-oidc" if settings.SESSION_COOKIE_SECURE else "parley-oidc"


class ToProvider(RedirectURLMixin, View):
    """Leads a browser to the identity provider."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the provider, and let the browser keep what it comes back with; or say why that is impossible."""
        oidc = provider()
        if oidc is None:
            raise Http404
        # Django takes a page of our own alone here.
        again = "again" in request.GET and request.user.is_authenticated
        attempt = attempt_begin(leads_to=self.get_redirect_url(), again=again)
        try:
            url = provider_of(oidc).begin(
                state=attempt.state, nonce=attempt.nonce, verifier=attempt.verifier, again=again
            )
        except ProviderAway:
            told = _AWAY.format(name=_named(oidc))
            return sign_in_page(request, told=told, status=503, leads_to=attempt.leads_to)
        answer = redirect(url)
        answer.headers["Cache-Control"] = "no-store"
        answer.set_cookie(
            cookie_name(),
            attempt_seal(attempt),
            max_age=LASTS_S,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",  # the way back begins at another site
        )
        return answer


class FromProvider(View):
    """Takes a browser that comes back from the identity provider."""

    http_method_names = ["get"]

    def get(self, request: HttpRequest) -> HttpResponse:
        """Sign in whom the provider vouches for, under a new session key; or say why nobody is signed in."""
        oidc = provider()
        if oidc is None:
            raise Http404
        answer = self._answer(request, oidc)
        answer.delete_cookie(cookie_name(), samesite="Lax")
        answer.headers["Cache-Control"] = "no-store"
        return answer

    def _answer(self, request: HttpRequest, oidc: Oidc) -> HttpResponse:
        name, caller = _named(oidc), caller_of_request(request)
        attempt = attempt_open(request.COOKIES.get(cookie_name(), ""))
        if attempt is None:
            return sign_in_page(request, told=_NOT_BEGUN, status=InputInvalid.status)
        page = partial(sign_in_page, request, leads_to=attempt.leads_to)
        try:
            provider_count(caller)  # before anything is stored or asked
            return self._signed_in(request, oidc, attempt, caller)
        except ProviderAway:
            return page(told=_AWAY.format(name=name), status=503)
        except ProviderRefuses as error:
            log.warning("oidc.sign_in_refused", issuer=oidc.issuer, reason=str(error))
            detail = {"by": oidc.issuer, "reason": str(error)}
            login_record(username="", outcome="failed", caller=caller, detail=detail)
            return page(told=(_DENIED if isinstance(error, _Denied) else _REFUSED).format(name=name), status=403)
        except TooManyAttempts as error:
            answer = page(wait=error.wait, status=error.status)
            answer.headers["Retry-After"] = str(error.retry_after_s)
            return answer
        except ControlPlaneError as error:
            return page(told=error.detail, status=error.status)

    def _signed_in(self, request: HttpRequest, oidc: Oidc, attempt: Attempt, caller: Caller) -> HttpResponse:
        """The answer to somebody for whom the provider vouches. Raises ProviderAway, ProviderRefuses, and
        InputInvalid and Forbidden with what to tell people.
        """
        given = request.GET
        if not attempt_spend(attempt, given.get("state", "")[:_MAX_CHARS]):
            raise InputInvalid(_NOT_BEGUN)
        asked = provider_of(oidc)
        # RFC 9207 section 2.4: an answer of another provider must not be taken for one of this.
        if ("iss" in given or asked.names_issuer()) and not constant_time_compare(given.get("iss", ""), oidc.issuer):
            raise ProviderRefuses("the answer names another issuer")
        if "error" in given:
            # What it says is for the log: a page that shows it would show what anybody writes into a link.
            raise _Denied(f"it answered {given['error'][:100]!r} {given.get('error_description', '')[:300]!r}")
        code = given.get("code", "")
        if not 0 < len(code) <= _MAX_CHARS or not code.isascii() or not code.isprintable():
            raise ProviderRefuses("there is no code in the answer")
        told = asked.redeem(code=code, verifier=attempt.verifier, nonce=attempt.nonce)
        if attempt.again:
            return _proved(request, oidc, told, attempt)
        user, key = sign_in_begin(told, caller=caller)
        login(request, user, backend=BACKEND)
        request.session[SESSION_KEY] = key
        half_end(request.session)
        if (at_s := proved_at(told.claims)) is not None:
            proof_note(request.session, at_s=at_s)
        answer = redirect(attempt.leads_to or settings.LOGIN_REDIRECT_URL)
        browser_keep(answer, user)
        return answer


def _proved(request: HttpRequest, oidc: Oidc, told: Told, attempt: Attempt) -> HttpResponse:
    """The page for somebody who is signed in and proved at the provider once more who they are; or why that is no
    proof: another person did, or the provider did not ask.
    """
    known = Identity.objects.filter(
        user_id=int(request.user.pk or 0), issuer=oidc.issuer, subject=told.subject
    ).exists()
    at_s = proved_at(told.claims)
    problem = ""
    if not known:
        problem = "That was somebody else than who is signed in here."
    elif at_s is None:
        problem = f"{oidc.name} does not say when you signed in there (auth_time), though it was asked to."
    elif at_s < attempt.began_at - CLOCK_SKEW_S:
        problem = f"{oidc.name} was asked to have you sign in again, and let you through by an earlier sign-in."
    else:
        proof_note(request.session)
    status = InputInvalid.status if problem else 200
    return render(request, "console/proved.html", {"provider": oidc.name, "problem": problem}, status=status)


class _Denied(ProviderRefuses):
    """The provider sent somebody back without a code."""


def _named(oidc: Oidc) -> str:
    return f"The identity provider ({oidc.name})"


urlpatterns = [
    path("login/oidc", ToProvider.as_view(), name="login-oidc"),
    path(CALLBACK_PATH.removeprefix("/"), FromProvider.as_view(), name="login-oidc-callback"),
]
