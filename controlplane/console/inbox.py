"""The inbox: what people were told, newest first."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import path

from controlplane.catalog.rights import environment_visible
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.notify.selectors import notification_list

_SIZE: Final = 50


class InboxPage(Page):
    """The page with the notifications of the environments that the user may see."""

    template = "inbox/list.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """One page of notifications: those older than the one whose id is `before` in the URL; without it, the
        newest.
        """
        wanted = request.GET.get("environment", "").strip()
        keys = self.principal.sees(state.key for state in self.environments)
        shown = (environment_visible(self.principal, wanted).key,) if wanted else keys
        before, alone = request.GET.get("before", ""), request.GET.get("for") == "me"
        found = notification_list(
            environment_keys=shown,
            reader=self.principal.id,
            alone=alone,
            before=int(before) if before.isascii() and before.isdigit() and len(before) <= 18 else None,
            limit=_SIZE + 1,
        )
        context = {
            "lines": found[:_SIZE],
            "next": found[_SIZE - 1].number if len(found) > _SIZE else None,
            "later": bool(before),
            "asked": wanted,
            "alone": alone,
            "keys": keys,
        }
        return self.page(context)


urlpatterns = [
    path("messages", InboxPage.as_view(), name="inbox"),
]
PLACES = (Place(Section.NOW, 30, "Messages", "notes", "inbox", of_environment=False),)
