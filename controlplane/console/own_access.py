"""Where somebody is signed in, and their tokens: on one page, for themselves and for who administers."""

from collections.abc import Mapping
from typing import ClassVar

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.people import account_get, account_to_change
from controlplane.accounts.principal import Role
from controlplane.accounts.selectors import person_token_list
from controlplane.accounts.services import api_token_revoke
from controlplane.accounts.signed_in import browser_end, browsers_end, browsers_of
from controlplane.common.errors import ControlPlaneError, InputInvalid, NotFound
from controlplane.console.pages import Page
from controlplane.console.paging import paged
from controlplane.console.posted import number_of, reason_of
from controlplane.console.sudo import sudo
from controlplane.console.tokens import api_line


class OwnAccessPage(Page):
    """The page with the browsers in which the user is signed in, and with their tokens."""

    template = "people/access.html"
    needs: ClassVar[Mapping[str, Role | None]] = {"GET": None, "POST": None}
    own: ClassVar[bool] = True

    def get(self, request: HttpRequest, user_id: int = 0, error: ControlPlaneError | None = None) -> HttpResponse:
        """The page as it is now; with `error`, what went wrong in the last action."""
        user = self._person(request, user_id)
        context = {
            "own": self.own,
            "whose": user,
            "browsers": browsers_of(user=user, this=self._this(request)),
            "page": paged(request, person_token_list(user_id=user.pk), api_line),
            "may_make": any(self.principal.may(Role.ADMIN, each.key) for each in self.environments),
            "error": error,
        }
        return self.page(context, status=error.status if error else 200)

    def post(self, request: HttpRequest, user_id: int = 0) -> HttpResponse:
        """End a browser's session, every other one, or a token."""
        try:
            told = self._act(request, self._to_change(request, user_id), request.POST.get("action", ""))
        except ControlPlaneError as error:
            return self.get(request, user_id, error)
        messages.success(request, told)
        return redirect(request.path)

    def _act(self, request: HttpRequest, user: User, action: str) -> str:
        # Nobody has to say why they look after what is their own.
        reason = "" if self.own and action in ("end-browser", "end-browsers") else reason_of(request)
        why = self.act(reason)
        match action:
            case "end-browser":
                browser_end(user=user, browser_id=number_of(request.POST, "id"), **why)
                return "That browser is signed out: its next request leads to the sign-in page."
            case "end-browsers":
                count = browsers_end(user=user, keep=self._this(request), **why)
                return f"{count} browser{'s are' if count != 1 else ' is'} signed out."
            case "end-token":
                token = person_token_list(user_id=user.pk).filter(pk=number_of(request.POST, "id")).first()
                if token is None:
                    raise NotFound("There is no such token. Nothing was changed.")
                api_token_revoke(token=token, **why)
                return (
                    f"Token {token.prefix}… has ended, and so has what was made with it: whoever sends one is refused."
                )
            case _:
                raise InputInvalid("There is no such action. Nothing was changed.")

    def _person(self, request: HttpRequest, user_id: int) -> User:  # noqa: ARG002 - of the other page
        return account_get(user_id=int(request.user.pk or 0))

    def _to_change(self, request: HttpRequest, user_id: int) -> User:
        return self._person(request, user_id)

    def _this(self, request: HttpRequest) -> str:
        return request.session.session_key or ""


class UserAccessPage(OwnAccessPage):
    """The page with the browsers and tokens of another person. For administrators of all environments."""

    needs: ClassVar[Mapping[str, Role | None]] = {"GET": Role.ADMIN, "POST": Role.ADMIN}
    own = False

    def _person(self, request: HttpRequest, user_id: int) -> User:  # noqa: ARG002 - of the other page
        return account_get(user_id=user_id)

    def _to_change(self, request: HttpRequest, user_id: int) -> User:
        by_superuser = bool(getattr(request.user, "is_superuser", False))
        return account_to_change(user_id=user_id, actor=self.principal, by_superuser=by_superuser)

    def _this(self, request: HttpRequest) -> str:  # noqa: ARG002 - as above
        return ""

    @sudo()
    def post(self, request: HttpRequest, user_id: int = 0) -> HttpResponse:
        """End what is another's, once whoever sends the form proved who they are; for one's own nobody is asked."""
        return super().post(request, user_id)


urlpatterns = [
    path("account/access", OwnAccessPage.as_view(), name="own-access"),
    path("users/<int:user_id>/access", UserAccessPage.as_view(), name="user-access"),
]
