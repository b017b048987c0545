"""The second step of signing in by a password: a second factor is asked for or, where it is required, set up first.

Nobody is signed in before it. Each page here acts for the user whose password was right in this session, and for
nobody else.
"""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views import View

from controlplane.accounts.logins import login_record
from controlplane.common.errors import ControlPlaneError, InputInvalid, TooManyAttempts
from controlplane.console.app_setup import setup_begin, setup_finish, setup_of
from controlplane.console.sign_in import caller_of_request, sign_in_page, signed_in
from controlplane.factors.security_keys import key_add, key_add_ask, key_ask, key_try, no_site
from controlplane.factors.selectors import factors_of, required
from controlplane.factors.services import code_try
from controlplane.factors.sign_ins import HalfSignIn, half_end, half_of
from controlplane.factors.values import Way

_OVER: Final = (
    "This sign-in was not begun in this browser, is older than ten minutes, or was ended by a new password. "
    "Begin again."
)
_WRONG: Final = {
    Way.APP: "This is not the code that the app shows now, or it was used already. Type the next one.",
    Way.KEY: "This key is none of yours, or its answer came too late. Try again.",
    Way.RECOVERY: "This is none of your recovery codes, or it was used already.",
}


class _Step(View):
    """A page for somebody whose password was right."""

    http_method_names = ["get", "post", "head"]
    half: HalfSignIn

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Call the method of the view; lead whoever is signed in to the front page, and others to the first step."""
        if request.user.is_authenticated:
            return redirect("home")
        half = half_of(request.session)
        if half is None:
            half_end(request.session)
            return sign_in_page(request, told=_OVER, status=InputInvalid.status)
        self.half = half
        answer = super().dispatch(request, *args, **kwargs)
        answer.headers["Cache-Control"] = "no-store"
        return answer


class SecondFactorStep(_Step):
    """The page that asks for a second factor."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """The ways that this user has; who has none is led to where one is set up."""
        if not factors_of(self.half.user.pk).any:
            return self._without(request)
        return self._page(request)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Sign in whoever sends a right code; or say that it is none, or how long to wait."""
        if not factors_of(self.half.user.pk).any:
            return self._without(request)
        way = _way_of(request)
        caller, user = caller_of_request(request), self.half.user
        try:
            if way is Way.KEY:
                right = key_try(request.session, user, request.POST.get("answer", ""), caller=caller)
            else:
                right = code_try(user, way, request.POST.get("code", ""), caller=caller)
        except TooManyAttempts as error:
            answer = self._page(request, error)
            answer.headers["Retry-After"] = str(error.retry_after_s)
            return answer
        if right:
            return signed_in(request, user, leads_to=self.half.leads_to, by=way)
        login_record(username=user.get_username(), outcome="failed", caller=caller, detail={"second_factor": way.words})
        return self._page(request, InputInvalid(_WRONG[way]), way=way)

    def _page(
        self, request: HttpRequest, error: ControlPlaneError | None = None, way: Way | None = None
    ) -> HttpResponse:
        context = {
            "person": self.half.user,
            "factors": factors_of(self.half.user.pk),
            "ask": key_ask(request.session, self.half.user),
            "no_site": no_site(),
            "error": error,
            "recovering": way is Way.RECOVERY,
        }
        status = error.status if error is not None else 200
        return render(request, "console/second_factor.html", context, status=status)

    def _without(self, request: HttpRequest) -> HttpResponse:
        """Where somebody without a second factor goes: an administrator may have removed theirs a moment ago."""
        if required():
            return redirect("login-second-factor-setup")
        half_end(request.session)
        return redirect("login")


class SetUpStep(_Step):
    """The page on which somebody who has to have a second factor sets up their first one."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """The secret for an authenticator app, and a field for its first code."""
        if factors_of(self.half.user.pk).any:
            return redirect("login-second-factor")
        if setup_of(request.session, self.half.user) is None:
            setup_begin(request.session, self.half.user)
        return self._page(request)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Sign in whoever set up a second factor, and show their recovery codes once."""
        user = self.half.user
        # Who has one proves it: a password alone must not add another.
        if factors_of(user.pk).any:
            return redirect("login-second-factor")
        way, given, caller = _way_of(request), request.POST, caller_of_request(request)
        try:
            if way is Way.KEY:
                name, answer = given.get("name", ""), given.get("answer", "")
                codes = key_add(request.session, user, name=name, answer=answer, caller=caller)
            else:
                codes = setup_finish(request.session, user, given.get("code", ""), caller=caller)
        except ControlPlaneError as error:
            return self._page(request, error)
        leads_to = signed_in(request, user, leads_to=self.half.leads_to, by=way)
        shown = render(request, "console/second_factor_codes.html", {"codes": codes, "leads_to": leads_to["Location"]})
        shown.cookies.update(leads_to.cookies)
        return shown

    def _page(self, request: HttpRequest, error: ControlPlaneError | None = None) -> HttpResponse:
        context = {
            "person": self.half.user,
            "setup": setup_of(request.session, self.half.user),
            "ask": key_add_ask(request.session, self.half.user),
            "error": error,
        }
        status = error.status if error is not None else 200
        return render(request, "console/second_factor_setup.html", context, status=status)


def _way_of(request: HttpRequest) -> Way:
    """The way that the form names; an authenticator app where it names none."""
    ways = {each.value: each for each in Way}
    return ways.get(request.POST.get("way", ""), Way.APP)


urlpatterns = [
    path("login/second-factor", SecondFactorStep.as_view(), name="login-second-factor"),
    path("login/second-factor/setup", SetUpStep.as_view(), name="login-second-factor-setup"),
]
