"""The inbox: what people were told, newest first; for administrators, where else it goes and whether it arrives."""

from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from controlplane.accounts.principal import Role
from controlplane.catalog.rights import environment_visible, require
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.config.values import any_of
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.selectors import channel_list, notification_list
from controlplane.notify.services import channel_resume, channel_test

_SIZE: Final = 50


class InboxPage(Page):
    """The page with the notifications of the environments that the user may see. Channels are shown to administrators
    of all environments only, because they hold addresses of other systems.
    """

    template = "inbox/list.html"
    needs = {"GET": None, "POST": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """One page of notifications: those older than the one whose id is `before` in the URL; without it, the
        newest.
        """
        wanted = request.GET.get("environment", "").strip()
        keys = self.principal.sees(state.key for state in self.environments)
        shown = (environment_visible(self.principal, wanted).key,) if wanted else keys
        before = request.GET.get("before", "")
        found = notification_list(
            environment_keys=shown,
            before=int(before) if before.isascii() and before.isdigit() and len(before) <= 18 else None,
            limit=_SIZE + 1,
        )
        administers = self.principal.may(Role.ADMIN, None)
        context = {
            "lines": found[:_SIZE],
            "next": found[_SIZE - 1].number if len(found) > _SIZE else None,
            "later": bool(before),
            "asked": wanted,
            "keys": keys,
            "administers": administers,
            "channels": channel_list() if administers else (),
            "ways": any_of([kind.facts.title for kind in ChannelKind]),
        }
        return self.page(context)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Send a sample message to a channel, or resume a paused channel."""
        require(self.principal, Role.ADMIN, None)
        try:
            messages.success(request, self._act(request.POST.get("action", ""), _channel(request)))
        except ControlPlaneError as error:
            messages.error(request, error.detail, extra_tags="danger")
        return redirect(request.get_full_path())

    def _act(self, action: str, channel: UUID) -> str:
        if action == "resume":
            channel_resume(public_id=channel, actor=self.principal, request_id=self.request_id)
            return "The channel is sent to again."
        if action != "test":
            raise InputInvalid("There is no such action. Nothing was changed.")
        sent = channel_test(public_id=channel)
        if not sent.ok:
            raise InputInvalid(f"The sample was not taken: {sent.answer}")
        return f"A sample was sent, and taken: {sent.answer}"


def _channel(request: HttpRequest) -> UUID:
    """The id of the channel that the form names. Raises InputInvalid."""
    try:
        return UUID(request.POST.get("channel", ""))
    except ValueError as error:
        raise InputInvalid("There is no such channel. Nothing was changed.") from error


urlpatterns = [
    path("messages", InboxPage.as_view(), name="inbox"),
]
PLACES = (Place(Section.NOW, 30, "Messages", "notes", "inbox", of_environment=False),)
