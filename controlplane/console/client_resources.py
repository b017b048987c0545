"""What one client has of each resource that it asks for, now or at an earlier time."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone

from controlplane.clients.holding_words import WORST_FIRST
from controlplane.clients.holdings import client_holdings
from controlplane.console.clients import PageOfClient
from controlplane.console.holding_lines import lines_of, published_revisions
from controlplane.console.paging import SIZE
from controlplane.console.resources import kind_of
from controlplane.console.times import field_text, zone_given
from controlplane.http.moments import moment_typed
from xdscore.holdings import HoldingState
from xdscore.resource_types import RESOURCE_TYPES

_MAX_TEXT: Final = 1_024  # a name
_MAX_CURSOR: Final = 2 * _MAX_TEXT
_MAX_TIME: Final = 40
_STATES: Final = {each.value: each for each in HoldingState}


class ClientResourcesPage(PageOfClient):
    """The page with the resources that a client asks for: the state of each, the revision it has and the published
    one.
    """

    template = "clients/resources.html"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        """One page of the resources that fit the filters in the URL."""
        client = self.client_seen(client_id)
        kind, state = kind_of(request), _STATES.get(request.GET.get("state", ""))
        name = request.GET.get("name", "").strip()[:_MAX_TEXT]
        asked_at = request.GET.get("at", "").strip()[:_MAX_TIME]
        at = moment_typed(asked_at, timezone.now(), zone_given(request.GET))
        after = request.GET.get("after", "")[:_MAX_CURSOR]
        found = client_holdings(
            public_id=client.id,
            types=(kind.word,) if kind is not None else (),
            states=(state,) if state is not None else (),
            name=name,
            at=at,
            after=after,
            limit=SIZE,
        )
        published = published_revisions(client.environment, {(row.type, row.name) for row in found.rows})
        context = {
            "client": client,
            "lines": lines_of(client.environment, found.rows, published, at=at),
            "next": found.after,
            "later": bool(after),
            "types": RESOURCE_TYPES,
            "states": WORST_FIRST,
            "word": kind.word if kind is not None else "",
            "state": state,
            "name": name,
            "at": at,
            "asked_at": field_text(at, seconds=True),
            "no_time": asked_at if asked_at and at is None else "",
            "filtered": bool(kind or state or name),
        }
        return self.page(context)


urlpatterns = [path("clients/<str:client_id>/resources", ClientResourcesPage.as_view(), name="client-resources")]
