"""Signing in: the one page for people. `accounts.logins` checks the passwords."""

from typing import Any, Final

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from structlog.contextvars import get_contextvars

from controlplane.accounts.browsers import KEPT_S, browser_write, cookie_name
from controlplane.accounts.logins import Caller, login_record, password_sign_in
from controlplane.accounts.vouching import provider
from controlplane.common.errors import TooManyAttempts
from controlplane.config.oidc import LocalSignIn
from controlplane.factors.proof import proof_note
from controlplane.factors.selectors import factors_of, required
from controlplane.factors.sign_ins import factor_note, half_begin, half_end
from controlplane.factors.values import Way
from controlplane.oidc.gates import SESSION_KEY
from controlplane.oidc.provider import provider_of
from controlplane.oidc.sign_ins import sign_in_end

BACKEND: Final = "django.contrib.auth.backends.ModelBackend"
_MAX_NAME_CHARS: Final = 150  # the column


class SignInForm(AuthenticationForm):
    """The form for name and password, which counts attempts."""

    def clean(self) -> dict[str, Any]:
        """Check the name and password, and remember the user they belong to. Raises TooManyAttempts, and
        ValidationError where they belong to nobody.
        """
        username, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if username and password:
            request = self.request or HttpRequest()
            self.user_cache = password_sign_in(
                request, username=username, password=password, caller=caller_of_request(request)
            )
            if self.user_cache is None:
                raise self.get_invalid_login_error()
            self.confirm_login_allowed(self.user_cache)
        return self.cleaned_data


class SignInView(LoginView):
    """The page to sign in by name and password."""

    template_name = "console/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The template values, with the identity provider, where there is one, and who may use the form."""
        return {**super().get_context_data(**kwargs), **ways_to_sign_in()}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign in; or say that name and password do not fit, without saying which is wrong, or how long to wait."""
        try:
            answer: HttpResponse = super().post(request, *args, **kwargs)
        except TooManyAttempts as error:
            typed = request.POST.get("username", "")[:_MAX_NAME_CHARS]
            context = self.get_context_data(form=SignInForm(request, initial={"username": typed}), wait=error.wait)
            return self.render_to_response(
                context, status=error.status, headers={"Retry-After": str(error.retry_after_s)}
            )
        return answer

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign the user in; or lead somebody who has a second factor, or has to have one, to the page for it."""
        user = form.get_user()
        if factors_of(user.pk).any or required():
            half_begin(self.request.session, user, leads_to=self.get_redirect_url())
            return redirect("login-second-factor")
        return signed_in(self.request, user, leads_to=self.get_redirect_url())


class SignOutView(LogoutView):
    """Signs out: here and, where the identity provider signed somebody in, at the provider."""

    http_method_names = ["post", "options"]
    next_page = "login"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """End the session. Then the sign-in page or, where the provider has a session to end, a page that leads there:
        a form may not lead to another site (the content security policy), and nobody is to be signed in again by the
        next click because the provider still knows them.
        """
        key, oidc = request.session.get(SESSION_KEY), provider()
        tokens = sign_in_end(key) if isinstance(key, str) else None
        answer = super().post(request, *args, **kwargs)
        if tokens is None or oidc is None:
            return answer
        back_to = f"{settings.PARLEY.public_url}{settings.LOGIN_URL}"
        url = provider_of(oidc).end_url(tokens, back_to=back_to)
        if not url:
            return answer
        return render(request, "console/signed_out.html", {"url": url, "provider": oidc.name})


def signed_in(request: HttpRequest, user: User, *, leads_to: str, by: Way | None = None) -> HttpResponse:
    """Sign in somebody who proved by a password of Parley's own who they are and, where they need one, by a second
    factor (`by`): under a new session key, and with the cookie by which this browser is known later. Leads to the page
    of Parley's own that was wanted.
    """
    login(request, user, backend=BACKEND)
    half_end(request.session)
    proof_note(request.session)
    if by is not None:
        factor_note(request.session)
    detail = {"second_factor": by.words} if by is not None else {}
    login_record(username=user.get_username(), outcome="succeeded", caller=caller_of_request(request), detail=detail)
    answer = redirect(leads_to or settings.LOGIN_REDIRECT_URL)
    browser_keep(answer, user)
    return answer


def sign_in_page(
    request: HttpRequest, *, status: int, told: str = "", wait: str = "", leads_to: str = ""
) -> HttpResponse:
    """The sign-in page with a sentence on why nobody was signed in (`told`), or how long to wait. `leads_to`: the page
    to go to after signing in.
    """
    context = {"form": SignInForm(request), "next": leads_to, "told": told, "wait": wait, **ways_to_sign_in()}
    return render(request, SignInView.template_name, context, status=status)


def ways_to_sign_in() -> dict[str, object]:
    """The template values that say by what one can sign in."""
    oidc = provider()
    return {
        "provider": oidc.name if oidc is not None else "",
        "break_glass": oidc is not None and oidc.local_sign_in is LocalSignIn.BREAK_GLASS,
    }


def browser_keep(answer: HttpResponse, user: User) -> None:
    """Set the cookie by which this browser is known as one with which the user signed in, until they change their
    password.
    """
    answer.set_cookie(
        cookie_name(),
        browser_write(user),
        max_age=KEPT_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def caller_of_request(request: HttpRequest) -> Caller:
    """Who sends a request to sign in: address, browser cookie and request id. The address that a proxy reports counts
    only where the proxy is a trusted one: asgi.py has checked that.
    """
    return Caller(
        address=str(request.META.get("REMOTE_ADDR", "")),
        browser=request.COOKIES.get(cookie_name(), ""),
        request_id=str(get_contextvars().get("request_id", "")),
    )


urlpatterns = [
    path("login", SignInView.as_view(), name="login"),
    path("logout", SignOutView.as_view(), name="logout"),
]
