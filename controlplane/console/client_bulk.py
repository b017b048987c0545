"""Labels for many clients: which are meant and what will happen, before it is done."""

from collections.abc import Mapping
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import urlencode

from controlplane.clients.filtering import ClientFilter
from controlplane.clients.labelling import LABELLER, clients_chosen
from controlplane.clients.selectors import client_list
from controlplane.clients.services import clients_label
from controlplane.common.errors import ControlPlaneError, InputInvalid, NotFound
from controlplane.console.bulk import labels_typed
from controlplane.console.bulk_words import LABELS
from controlplane.console.clients import ClientsPage, clients_asked
from controlplane.console.pages import Page

_SHOWN: Final = 25
_MAX_CHOSEN_CHARS: Final = 500_000


class ClientsBulkPage(Page):
    """The page that says which clients get which labels, and labels them."""

    template = "clients/bulk.html"
    needs = {"GET": LABELLER, "POST": LABELLER}

    def get(self, request: HttpRequest, environment_key: str) -> HttpResponse:  # noqa: ARG002 - Django's
        """The list, in which one chooses."""
        return redirect("clients", environment_key)

    def post(self, request: HttpRequest, environment_key: str) -> HttpResponse:
        """Ask for the labels; once they are given, set them."""
        if request.POST.get("act") != LABELS.act.value:
            raise InputInvalid("The form names nothing to do. Nothing was changed.")
        chosen: tuple[str, ...] = ()
        try:
            chosen = self._chosen()
            if request.POST.get("sure") != "1":
                return self._page(chosen)
            done = clients_label(
                environment_key=environment_key,
                clients=chosen,
                edits=labels_typed(request.POST.get("labels", "")),
                actor=self.principal,
                request_id=self.request_id,
            )
        except ControlPlaneError as error:
            return self._page(chosen, error)
        moved, count = len(done.moved), f"{done.clients:,} client{'' if done.clients == 1 else 's'}"
        if moved:
            messages.success(request, f"{moved:,} of {count} got other labels.")
        else:
            messages.info(request, "Nothing had to change: everything is as you asked.")
        return redirect(self.leave)

    @property
    def leave(self) -> str:
        """The URL of the list, filtered as it was, or of the client whose page the form was on."""
        if self._at:
            return reverse("client", args=[self._at])
        query = urlencode(self._filters)
        return f"{reverse('clients', args=[self.here.key])}{'?' if query else ''}{query}"

    @property
    def _at(self) -> str:
        """The id of the client on whose page the form was; empty where it was in the list."""
        at = self.request.POST.get("at", "")
        return at if at.isascii() and at.isalnum() else ""

    @property
    def _filters(self) -> Mapping[str, str]:
        """What the list was filtered by."""
        given = ((each.name, self.request.POST.get(f"f_{each.name}", "")) for each in ClientsPage.frame.filters)
        return {name: value for name, value in given if value}

    def _chosen(self) -> tuple[str, ...]:
        """The ids of the clients that the form means. Raises InputInvalid and InputTooLarge."""
        given = self.request.POST
        text = given.get("chosen", "")
        if len(text) > _MAX_CHOSEN_CHARS:
            raise InputInvalid("The form names more clients than can be chosen at once. Nothing was changed.")
        if not text and given.get("all") == "1":
            asked = ClientsPage.frame.read(self._filters, timezone.now())
            asked.require()
            return clients_chosen(clients_asked(self.here.key, asked))
        chosen = tuple(text.split() or given.getlist("pick"))
        if not all(each.isascii() and each.isalnum() for each in chosen):
            raise NotFound("The form names something that is no client. Choose again. Nothing was changed.")
        return chosen

    def _page(self, chosen: tuple[str, ...], error: ControlPlaneError | None = None) -> HttpResponse:
        given = self.request.POST
        shown = client_list(
            environment_keys=[self.here.key], wanted=ClientFilter(clients=chosen[:_SHOWN]), limit=_SHOWN
        )
        context = {
            "words": LABELS,
            "clients": shown,
            "count": len(chosen),
            "more": max(0, len(chosen) - _SHOWN),
            "chosen": " ".join(chosen),
            "filters": [(f"f_{name}", value) for name, value in self._filters.items()],
            "at": self._at,
            "labels": given.get("labels", ""),
            "leave": self.leave,
            "error": error,
        }
        return self.page(context, status=200 if error is None else error.status)


urlpatterns = [
    path("e/<str:environment_key>/clients/bulk", ClientsBulkPage.as_view(), name="clients-bulk"),
]
