"""The second factors of one's own account: set up, looked at, removed."""

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.logins import Caller
from controlplane.accounts.people import person_get
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.app_setup import setup_begin, setup_end, setup_finish, setup_of
from controlplane.console.pages import Page
from controlplane.console.posted import number_of
from controlplane.console.sign_in import caller_of_request
from controlplane.console.sudo import sudo
from controlplane.factors.security_keys import key_add, key_add_ask, no_site
from controlplane.factors.selectors import factors_of, required
from controlplane.factors.services import codes_renew, factor_permit, factor_remove
from controlplane.factors.sign_ins import factor_note
from controlplane.factors.telling import address_change
from controlplane.factors.values import Way

_ADDS_KEY = ("begin-key", "add-key")


class SecondFactorPage(Page):
    """The page on which people set up and remove their own second factors."""

    template = "people/second_factor.html"
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """The second factors that the user has, and the authenticator app that this session sets up."""
        return self._page(request)

    @sudo()
    def post(self, request: HttpRequest) -> HttpResponse:
        """Carry out the action that the form names; new recovery codes are shown once, on the page that follows."""
        acts = {
            "begin-app": self._begin_app,
            "leave-app": self._leave_app,
            "add-app": self._add_app,
            "remove-app": self._remove_app,
            "begin-key": self._begin_key,
            "add-key": self._add_key,
            "remove-key": self._remove_key,
            "renew-codes": self._renew_codes,
            "change-address": self._change_address,
        }
        try:
            factor_permit(self._user)
            act = acts.get(request.POST.get("action", ""))
            if act is None:
                raise InputInvalid("There is no such action. Nothing was changed.")
            codes = act(request.POST)
        except ControlPlaneError as error:
            return self._page(request, error=error)
        # A page that has to be shown at once is no redirect: it is not there a second time.
        shown = bool(codes) or act == self._begin_key
        return self._page(request, codes=codes) if shown else redirect("second-factor")

    def _begin_app(self, _given: QueryDict) -> tuple[str, ...]:
        setup_begin(self.request.session, self._user)
        return ()

    def _leave_app(self, _given: QueryDict) -> tuple[str, ...]:
        setup_end(self.request.session)
        return ()

    def _add_app(self, given: QueryDict) -> tuple[str, ...]:
        codes = setup_finish(self.request.session, self._user, given.get("code", ""), caller=self._caller)
        factor_note(self.request.session)
        messages.success(self.request, "Your authenticator app is set up.")
        return codes

    def _remove_app(self, _given: QueryDict) -> tuple[str, ...]:
        factor_remove(user=self._user, way=Way.APP, caller=self._caller)
        messages.success(self.request, "Your authenticator app is removed: its codes are good no longer.")
        return ()

    def _begin_key(self, _given: QueryDict) -> tuple[str, ...]:
        return ()

    def _add_key(self, given: QueryDict) -> tuple[str, ...]:
        name, answer = given.get("name", ""), given.get("answer", "")
        codes = key_add(self.request.session, self._user, name=name, answer=answer, caller=self._caller)
        factor_note(self.request.session)
        messages.success(self.request, "Your security key is added.")
        return codes

    def _remove_key(self, given: QueryDict) -> tuple[str, ...]:
        factor_remove(user=self._user, way=Way.KEY, key_id=number_of(given, "key"), caller=self._caller)
        messages.success(self.request, "The security key is removed: it signs nobody in any more.")
        return ()

    def _renew_codes(self, _given: QueryDict) -> tuple[str, ...]:
        return codes_renew(user=self._user, caller=self._caller)

    def _change_address(self, given: QueryDict) -> tuple[str, ...]:
        address_change(user=self._user, address=given.get("address", ""), caller=self._caller)
        messages.success(self.request, "Saved. You are told there." if self._user.email else "Saved. You are not told.")
        return ()

    def _page(
        self, request: HttpRequest, *, codes: tuple[str, ...] = (), error: ControlPlaneError | None = None
    ) -> HttpResponse:
        user = self._user
        adds_key = not codes and request.POST.get("action") in _ADDS_KEY
        context = {
            "person": person_get(user_id=user.pk),
            "factors": factors_of(user.pk),
            "required": required(),
            "setup": setup_of(request.session, user),
            "ask": key_add_ask(request.session, user) if adds_key else None,
            "key_name": request.POST.get("name", ""),
            "no_site": no_site(),
            "tells": settings.PARLEY.mail is not None,
            "address": request.POST.get("address", user.email),
            "codes": codes,
            "error": error,
        }
        answer = self.page(context, status=error.status if error is not None else 201 if codes else 200)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    @property
    def _user(self) -> User:
        return cast(User, self.request.user)

    @property
    def _caller(self) -> Caller:
        return caller_of_request(self.request)


urlpatterns = [
    path("account/second-factor", SecondFactorPage.as_view(), name="second-factor"),
]
