"""Invitations for who administers: made, listed, sent anew and withdrawn. Whoever has a link comes to `invited`."""

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.pages import Page
from controlplane.console.paging import paged
from controlplane.console.people import role_words
from controlplane.console.posted import number_of, reason_of, whole_of
from controlplane.console.sign_in import ways_to_sign_in
from controlplane.console.sudo import sudo
from controlplane.invitations.letters import invitation_mail, link_of
from controlplane.invitations.models import Invitation
from controlplane.invitations.selectors import Reading, invitation_list
from controlplane.invitations.services import invitation_make, invitation_renew, invitation_withdraw
from controlplane.invitations.values import DEFAULT_DAYS, MAX_DAYS, Given

_ROWS: Final = 4


@dataclass(frozen=True, slots=True)
class Link:
    """A new link, which is shown once. `mailed_to`: the address to which it was sent; `failure`: why it was not."""

    url: str
    mailed_to: str
    failure: str


class InvitationsPage(Page):
    """The page with all invitations. For administrators of all environments."""

    template = "people/invitations.html"
    needs = {"GET": Role.ADMIN, "POST": Role.ADMIN}

    def get(
        self, request: HttpRequest, error: ControlPlaneError | None = None, link: Link | None = None
    ) -> HttpResponse:
        """One page of invitations, newest first. `link`: a new link to show; `error`: what went wrong."""
        given = request.POST if error is not None else QueryDict()
        context = {
            "page": paged(request, invitation_list(), Reading().invited),
            "link": link,
            "error": error,
            "given": given,
            "rows": [
                (number, given.get(f"role-{number}", ""), given.get(f"environment-{number}", ""))
                for number in range(1, _ROWS + 1)
            ],
            "roles": role_words(),
            "keys": [state.key for state in self.environments],
            "days": given.get("days", DEFAULT_DAYS),
            "most_days": MAX_DAYS,
            "mails": settings.PARLEY.mail is not None,
            **ways_to_sign_in(),
        }
        answer = self.page(context, status=error.status if error else 201 if link else 200)
        if link is not None:
            answer.headers["Cache-Control"] = "no-store"
        return answer

    @sudo()
    def post(self, request: HttpRequest) -> HttpResponse:
        """Make an invitation, make a new link for one, or withdraw one."""
        given, action = request.POST, request.POST.get("action", "")
        try:
            reason = reason_of(request)
            if action == "make":
                row, token = invitation_make(
                    username=given.get("username", "").strip(),
                    address=given.get("address", "").strip(),
                    roles=_roles_of(given),
                    days=whole_of(given, "days", minimum=1, maximum=MAX_DAYS),
                    **self.act(reason),
                )
                return self.get(request, link=_sent(row, token))
            number = number_of(given, "id")
            why = self.act(reason)
            if action == "renew":
                row, token = invitation_renew(invitation_id=number, **why)
                return self.get(request, link=_sent(row, token))
            if action != "withdraw":
                raise InputInvalid("There is no such action. Nothing was changed.")
            invitation_withdraw(invitation_id=number, **why)
        except ControlPlaneError as error:
            return self.get(request, error)
        messages.success(request, "The invitation is withdrawn: its link opens nothing any more.")
        return redirect("invitations")


def _sent(row: Invitation, token: str) -> Link:
    """The link as it is shown, after it was mailed where there is an address and a mail server."""
    wanted = bool(row.address) and settings.PARLEY.mail is not None
    failure = invitation_mail(row, token) if wanted else ""
    return Link(link_of(token), row.address if wanted and not failure else "", failure)


def _roles_of(given: QueryDict) -> tuple[Given, ...]:
    """The roles in the form: one of each row in which one is chosen; "*" stands for all environments."""
    known = {role.value: role for role in Role}
    rows = [(given.get(f"role-{number}", ""), given.get(f"environment-{number}", "")) for number in range(1, _ROWS + 1)]
    return tuple(Given(known[role], "" if key == "*" else key) for role, key in rows if role in known and key)


urlpatterns = [path("users/invitations", InvitationsPage.as_view(), name="invitations")]
