"""Signing in. The one door for people: Django's admin sends them here, too."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from structlog.contextvars import get_contextvars

from controlplane.accounts.logins import login_attempt, login_record, login_succeeded

_RETRY_AFTER_S = 60


class SignInView(LoginView):
    """Name and password, a few times a minute."""

    template_name = "console/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Let in, refuse, or say to wait."""
        username = request.POST.get("username", "")[:150]
        if login_attempt(address=_address(request), username=username):
            answer: HttpResponse = super().post(request, *args, **kwargs)
            return answer
        self._record(username, "throttled")
        form = self.get_form()
        form.errors.clear()
        context = self.get_context_data(form=form, wait_s=_RETRY_AFTER_S)
        return self.render_to_response(context, status=429, headers={"Retry-After": str(_RETRY_AFTER_S)})

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in, under a new session key."""
        answer = super().form_valid(form)
        login_succeeded(address=_address(self.request))
        self._record(form.get_user().get_username(), "succeeded")
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Refuse, in words that do not say which of the two was wrong."""
        self._record(self.request.POST.get("username", "")[:150], "failed")
        return super().form_invalid(form)

    def _record(self, username: str, outcome: str) -> None:
        request_id = str(get_contextvars().get("request_id", ""))
        login_record(username=username, address=_address(self.request), outcome=outcome, request_id=request_id)


def _address(request: HttpRequest) -> str:
    # What a proxy reports counts only when it is one we were told of: asgi.py has put it here then.
    return str(request.META.get("REMOTE_ADDR", ""))
